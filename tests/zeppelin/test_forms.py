"""Forms in the text of paragraphs on a real Zeppelin server, with jobs of the local backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.zeppelin.page import Page
from tests.zeppelin.server import Note, Zeppelin, output_of

pytestmark = [pytest.mark.cluster, pytest.mark.full]
TEXT = "%submarine.python\nprint(f'${rate=0.1}', '${checkbox:on=x|y,x(X)|y|z}')"
#: Every kind of form that Zeppelin has.
SIMPLE = """%submarine.python(form=simple)
print('${name}', '${city=b,b(Bern)|z}', '${checkbox( or ):sizes=s,s|m|l}', '${password:key}')
print('$${all=1}')
"""
#: Code that Zeppelin itself would replace.
CODE = """%submarine.python
from string import Template
price = 3
print(f'${price} ${price=}', Template('${x}').substitute(x=4), '${password:key} $${all=1}')
"""
SHELL = "%submarine.sh\nX=5\necho ${X=1} ${X:-2}"
#: Zeppelin replaces the forms also in these.
SIMPLE_SHELL = "%submarine.sh(form=simple)\necho ${word=hello}"
SIMPLE_COMMAND = "%submarine(form=simple)\nhelp ${verb=cells}"
#: Zeppelin reads the text before the colon as the kind of a form.
REFUSED = "%submarine.sh(form=simple)\necho ${X:-2}"
KINDS = {"name": "TextBox", "city": "Select", "sizes": "CheckBox", "key": "Password"}
RUN = "%submarine run forms --memory ${memory=300M,300M|400M} --wait"


@pytest.fixture
def local_zeppelin(zeppelin_home: Path) -> Iterator[Zeppelin]:
    server = Zeppelin(zeppelin_home / "forms", {"SUBMARINE_BACKEND": "local"})
    server.install(**{"submarine.allow.service.user": "true"})
    try:
        server.start()
        yield server
    finally:
        server.close()


def run_page(page: Page, paragraph: str, text: str, expected: str, **params: Any) -> dict[str, Any]:
    """Run a paragraph with values of its forms; the paragraph after a run with that output."""
    page.run(paragraph, text, **params)
    # The output of the run before it is shown until it starts.
    page.note.awaited(paragraph, lambda now: expected in output_of(now))
    done = page.note.ended(paragraph)
    assert done["status"] == "FINISHED", output_of(done)
    return done


def forms_shown(message: dict[str, Any], paragraph: str) -> dict[str, str] | None:
    """Return the forms of a paragraph and their types in a message at the end of its run."""
    shown = message["data"].get("paragraph") if message["op"] == "PARAGRAPH" else None
    if shown is None or shown["id"] != paragraph or shown["status"] != "FINISHED":
        return None
    return {name: form["type"] for name, form in shown["settings"]["forms"].items()}


def note_forms(note: Note) -> dict[str, Any]:
    return dict(note.server.call("GET", f"notebook/{note.id}")["body"]["noteForms"])


def test_forms_in_the_text(local_zeppelin: Zeppelin) -> None:
    note = local_zeppelin.note("text", *(("", text) for text in (TEXT, SIMPLE, CODE, RUN)))
    own, simple, code, run = note.paragraphs
    # Their values are not known to the process.
    assert "Paragraph 1: the value of its form ${rate=0.1}" in output_of(note.run(run))
    first = note.run(own)
    assert output_of(first) == "0.1 x,y\n"
    forms = first["settings"]["forms"]
    assert list(forms) == ["rate", "on"]
    assert forms["on"]["options"][0] == {"value": "x", "displayName": "X"}
    assert output_of(note.run(simple)) == " b s \n1\n"
    assert list(note_forms(note)) == ["all"]
    assert output_of(note.run(code)) == "$3 $price=3 4 ${password:key} $${all=1}\n"
    assert output_of(note.run(note.add(SHELL))) == "5 5\n"
    assert output_of(note.run(note.add(SIMPLE_SHELL))) == "hello\n"
    helped = note.run(note.add(SIMPLE_COMMAND))
    assert "cells" in output_of(helped)
    assert list(helped["settings"]["forms"]) == ["verb"]
    assert "dynamic form with type: X" in output_of(note.run(note.add(REFUSED)))
    with Page(local_zeppelin, note) as page:
        shown = run_page(page, own, TEXT, "5 z", rate="5", on=["z"])
        assert list(shown["settings"]["forms"]) == ["rate", "on"]
        page.say("SAVE_NOTE_FORMS", noteId=note.id, noteParams={"all": "2"})
        params = {"name": "Eve", "city": "z", "sizes": ["s", "l"], "key": "k"}
        shown = run_page(page, simple, SIMPLE, "Eve z s or l k\n2\n", **params)
        assert shown["settings"]["params"] == params
        # The types of the forms are in the messages to the page only.
        page.await_(lambda one: forms_shown(one, simple) == KINDS)
        assert list(note_forms(note)) == ["all"]
        done = run_page(page, run, RUN, "Eve z s or l k", memory="400M")
    assert "5 z" in output_of(done)
    assert "$3 $price=3 4 ${password:key} $${all=1}" in output_of(done)
    assert done["settings"]["params"] == {"memory": "400M"}
    # After a change of its text.
    note.change(simple, SIMPLE + "\n")
    assert "its form ${name} is not known" in output_of(note.run(run))
