"""The object ``z`` on a real Zeppelin server: forms, and values of several interpreter processes.

Spark's interpreter is not in the package of the tests' server. The other process is the group
``echo``; the server, a JVM, reads and writes each value in Java's format on its way.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.zeppelin.page import Page
from tests.zeppelin.server import Zeppelin, output_of

pytestmark = pytest.mark.cluster
FORMS = """%submarine.python(local)
rate = z.input("rate", 0.1)
city = z.select("city", [("b", "Bern"), ("z", "Zürich <b>")], "z")
size = z.select("size", [1, 2])
boxes = z.checkbox("boxes", [("x", "X"), ("y", "Y")], ["x"])
secret = z.password("secret")
print([rate, city, size, boxes, secret])
"""


def text(paragraph: dict[str, Any]) -> str:
    return output_of(paragraph).strip()


def test_forms_of_a_paragraph(zeppelin: Zeppelin) -> None:
    note = zeppelin.note("forms", ("", FORMS))
    (paragraph,) = note.paragraphs
    first = note.run(paragraph)
    assert text(first) == "['0.1', 'z', 1, ['x'], None]"
    forms = first["settings"]["forms"]
    assert list(forms) == ["rate", "city", "size", "boxes", "secret"]
    assert (forms["rate"]["defaultValue"], forms["boxes"]["defaultValue"]) == ("0.1", ["x"])
    assert forms["city"]["options"][1] == {"value": "z", "displayName": "Zürich <b>"}
    params = {"rate": "5", "city": "b", "size": 2, "boxes": ["y"], "secret": "s"}
    with Page(zeppelin, note) as page:
        page.run(paragraph, FORMS, **params)
        shown = note.awaited(paragraph, lambda now: "'5'" in text(now))
    assert text(shown) == "['5', 'b', 2, ['y'], 's']"
    assert shown["settings"]["params"]["city"] == "b"
    # A paragraph without forms has none.
    other = note.run(note.add("%submarine.python(local)\nprint(rate)"))
    assert text(other) == "5"
    assert not other["settings"]["forms"]


def test_values_pass_between_interpreters(zeppelin: Zeppelin) -> None:
    values = {
        "text": "grüße \0 😀\n\t%html",
        "long": "x" * 70_000,
        "number": -7,
        "large": 1 << 40,
        "float": 0.1,
        "flag": True,
    }
    puts = "\n".join(f"z.put({name!r}, {value!r})" for name, value in values.items())
    note = zeppelin.note("values", ("", f"%submarine.python(local)\n{puts}\nprint('done')"))
    assert text(note.run(note.paragraphs[0])) == "done"
    orders = "\n".join(f"get {name}" for name in values)
    answers = text(note.run(note.add(f"%echo\n{orders}")))
    for value in values.values():
        assert json.dumps(value) in answers
    back = {f"{name}2": value for name, value in values.items()}
    orders = "\n".join(f"put {name} {json.dumps(value)}" for name, value in back.items())
    note.run(note.add(f"%echo\n{orders}"))
    checks = "\n".join(f"assert z.get({name!r}) == {value!r}" for name, value in back.items())
    rest = "assert z.get('none') is None and not z.contains('none')\nprint('equal')"
    assert text(note.run(note.add(f"%submarine.python(local)\n{checks}\n{rest}"))) == "equal"
    refused = note.run(note.add("%submarine.python(local)\nz.put('list', [1])"))
    assert refused["status"] == "ERROR"
    assert "share a text, number, boolean or DataFrame" in text(refused)


def test_tables_are_shown_and_shared(zeppelin: Zeppelin) -> None:
    frame = "import pandas\nframe = pandas.DataFrame({'a': [1, 2], 'b': ['x', 'ü']})\n"
    note = zeppelin.note("tables", ("", f"%submarine.python(local)\n{frame}z.show(frame)"))
    shown = note.run(note.paragraphs[0])
    assert [one["type"] for one in shown["results"]["msg"]] == ["TABLE"]
    assert text(shown) == "a\tb\n1\tx\n2\tü"
    saved = note.run(note.add("%submarine.python(saveAs=saved)\nframe"))
    assert saved["status"] == "FINISHED", text(saved)
    assert json.dumps("a\tb\n1\tx\n2\tü") in text(note.run(note.add("%echo\nget saved")))
    table = json.dumps("a\tb\n5\tq")
    note.run(note.add(f"%echo\nput given {table}"))
    read = note.run(
        note.add(
            "%submarine.python(local)\nfound = z.getAsDataFrame('given')\n"
            "z.put('whole', frame)\nsame = z['whole'].strip() == z.get('saved')\n"
            "print(found.a[0] + 1, found.b[0], same)"
        )
    )
    assert text(read) == "6 q True"
