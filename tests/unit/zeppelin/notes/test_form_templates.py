"""Forms in the text of paragraphs: what is one, its value, and the program of a note."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from submarine_jobs.errors import UsageError
from submarine_zeppelin.interface import Context, NoteParagraph
from submarine_zeppelin.local import paragraph_forms
from submarine_zeppelin.migration import CHANGES, RUNS, check_migration
from submarine_zeppelin.notes import (
    collect_cells,
    expand_text,
    export_notebook,
    find_templates,
    read_note,
    read_note_file,
    record_form_values,
    shell_files,
)
from submarine_zeppelin.notes.form_templates import expand_simple, expand_templates
from submarine_zeppelin.notes.note import InterpreterNames

#: Text, values of the page, and the text that runs.
FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("x = ${rate=0.1}", {}, "x = 0.1"),
    ("x = ${rate=0.1}", {"rate": "5"}, "x = 5"),
    ("x = ${rate=0.1}", {"rate": 5.0}, "x = 5"),
    ("x = '${rate(Learning rate)=0.1}'", {"rate": ""}, "x = ''"),
    ("${city=b,b(Bern)|z(Zürich)}", {}, "b"),
    ("${city=b,b(Bern)|z(Zürich)}", {"city": "z"}, "z"),
    ("${city=,a|b}!", {}, "!"),
    ("${checkbox:parts=x|y,x|y|z}", {}, "x,y"),
    ("${checkbox:parts=x|y,x|y|z}", {"parts": ["z", "gone"]}, "z"),
    ("${checkbox( or ):parts=x|y,x(X)|y|z}", {"parts": ["x", "z"]}, "x or z"),
    ("_${rate=1} ${rate=2}", {}, "1 2"),
    ("${max rows=10}", {"max rows": "${rate=1} \\1 $0"}, "${rate=1} \\1 $0"),
]
#: Texts of programs that are no forms.
CODE = [
    'f"costs ${price}"',
    'f"${price=}"',
    'f"${price = }"',
    'f"${price=!r}"',
    'f"${price=:.2f}"',
    'f"${price==1}"',
    'f"${price - 1 if price >= 2 else 3}"',
    "f\"${row['a=1']}\"",
    'f"${of(x=1)}"',
    'Template("${name}")',
    "!echo ${HOME} ${HOME:-x} ${HOME:=x} ${#HOME} ${HOME%=x}",
    "$${rate=1}",
    "${password:key}",
    "${}",
    "${=1}",
    "${rate=1\n}",
]


@pytest.mark.parametrize(("text", "params", "expected"), FORMS)
def test_forms_are_replaced_by_their_values(
    text: str, params: dict[str, Any], expected: str
) -> None:
    assert expand_templates(text, params) == expected


@pytest.mark.parametrize("text", CODE)
def test_code_is_no_form(text: str) -> None:
    assert find_templates(text) == []
    assert expand_templates(text, {"price": "9", "HOME": "9", "rate": "9", "key": "9"}) == text


@settings(max_examples=40)
@given(st.text(alphabet="${}=_a(),|: \n!"), st.text())
def test_any_text(text: str, value: str) -> None:
    found = find_templates(text)
    params = {one.name: value for one in found}
    if not found:
        assert expand_templates(text, params) == text
    for one in found:
        assert paragraph_forms(Context("2J", "p", text=text)).to_json()["forms"][one.name]


def test_a_hostile_text_takes_no_time() -> None:
    for text in ("${a=" * 4_000, "_" * 50_000 + "${", "${a" + "(" * 50_000, "${" + "a " * 50_000):
        assert expand_templates(text, {}) == text
        assert expand_simple(text, {}, {}) == text


def test_the_forms_of_a_page() -> None:
    text = "${n(Name)=1} _${h=2} ${city=b,b(Bern)|z} ${checkbox:on=x,x|y}"
    shown = paragraph_forms(Context("2J", "p", text=text, params={"n": "7"})).to_json()
    assert shown["params"] == {"n": "7", "h": "2", "city": "b", "on": ["x"]}
    forms = shown["forms"]
    assert [one["type"] for one in forms.values()] == ["TextBox", "TextBox", "Select", "CheckBox"]
    assert (forms["n"]["displayName"], forms["n"]["defaultValue"]) == ("Name", "1")
    assert [one["hidden"] for one in forms.values()] == [False, True, False, False]
    assert forms["city"]["options"] == [{"value": "b", "displayName": "Bern"}, {"value": "z"}]
    assert forms["on"]["defaultValue"] == ["x"]
    many = Context("2J", "p", text=" ".join(f"${{f{n}=1}}" for n in range(300)))
    with pytest.raises(UsageError, match="more than 200 forms"):
        paragraph_forms(many)


def paragraphs(note_id: str, *texts: tuple[str, str]) -> list[NoteParagraph]:
    return [NoteParagraph(note_id, f"p{n}", *pair) for n, pair in enumerate(texts, start=1)]


def ran(note_id: str, number: int, text: str, sent: str = "", **params: Any) -> str:
    """Run a paragraph with values of its forms; the text that runs."""
    head, _, body = text.partition("\n")
    mode = head.partition("form=")[2].rstrip(")")
    options = {"form": mode} if mode else {}
    context = Context(note_id, f"p{number}", text=text, options=options, params=params)
    sent = sent or f"\n{body}"
    record_form_values(sent, context)
    return expand_text(sent, context)


def test_the_program_has_the_text_that_ran() -> None:
    text = "%submarine.python\nx = ${rate=0.1}"
    note = paragraphs("2JRAN", ("", text), ("prepare.sh", "%submarine.sh\necho ${HOME=x}"))
    found = read_note(note, InterpreterNames())
    with pytest.raises(UsageError, match=r"Paragraph 1: .* form \$\{rate=0\.1\} is not known"):
        collect_cells(found)
    with pytest.raises(UsageError, match="not known"):
        export_notebook(found, "2JRAN")
    for params in ({}, {"rate": "3"}, {"rate": "4"}):
        code = ran("2JRAN", 1, text, **params)
        found = read_note(note, InterpreterNames())
        assert "\n" + collect_cells(found).cells()[0].source == code
        assert code == f"\nx = {params.get('rate', '0.1')}"
    assert export_notebook(found, "2JRAN").document["cells"][1]["source"] == ["x = 4"]
    # A shell variable is none.
    assert shell_files(found) == {"prepare.sh": b"echo ${HOME=x}\n"}
    # A form that was added has its default, as at its first run; the other keeps its value.
    note[0] = replace(note[0], text=text + " + ${more=1}")
    assert collect_cells(read_note(note, InterpreterNames())).cells()[0].source == "x = 4 + 1"


def test_forms_that_zeppelin_replaces() -> None:
    text = "%submarine.python(form=simple)\nx = ${rate} + $${all=1}"
    shell = "%submarine.sh(form=simple)\necho ${HOME}"
    note = paragraphs("2JSIMPLE", ("", text), ("prepare.sh", shell))
    found = read_note(note, InterpreterNames())
    with pytest.raises(UsageError, match=r"its form \$\{rate\} is not known"):
        collect_cells(found)
    with pytest.raises(UsageError, match=r"its form \$\{HOME\} is not known"):
        shell_files(found)
    # A value that looks like a form is not replaced again.
    assert ran("2JSIMPLE", 1, text, "\nx = ${a=3} + 1", rate="${a=3}") == "\nx = ${a=3} + 1"
    ran("2JSIMPLE", 2, shell, "\necho home")
    found = read_note(note, InterpreterNames())
    assert collect_cells(found).cells()[0].source == "x = ${a=3} + 1"
    assert shell_files(found) == {"prepare.sh": b"echo home\n"}
    note[0] = replace(note[0], text=text + "\n")
    with pytest.raises(UsageError, match="text was changed"):
        collect_cells(read_note(note, InterpreterNames()))


def test_native_paragraphs_have_no_forms() -> None:
    text = "%submarine.python(form=native)\nx = '${rate=0.1}'"
    assert ran("2JNATIVE", 1, text, rate="5") == "\nx = '${rate=0.1}'"
    found = read_note(paragraphs("2JNATIVE", ("", text)), InterpreterNames())
    assert collect_cells(found).cells()[0].source == "x = '${rate=0.1}'"


def test_forms_as_zeppelin_replaces_them() -> None:
    params = {"name": "Eve", "sizes": ["s", "l"], "key": "k", "all": "no"}
    for text, expected in [
        ("${name} ${none} ${none=}", "Eve  "),
        ("${password:key} _${name(Name)=x}", "k Eve"),
        ("${checkbox( or ):sizes=s,s|m|l(Large)}", "s or l"),
        ("$${all=1} $${more=3}", "2 3"),
        ("${HOME:-x} ${city=b,b|z}", "${HOME:-x} b"),
    ]:
        assert expand_simple(text, params, {"all": "2", "name": "no"}) == expected


def test_a_notes_file_has_the_values(tmp_path: Path) -> None:
    texts = [
        ("%submarine.python\nx = ${rate=0.1}", {"rate": "8"}),
        ("%submarine\nrun --memory ${memory=1G,1G|2G}", {}),
        ("%submarine\nrun --memory ${memory}", {}),
        ("%submarine.sh\necho ${HOME}", {}),
        ("%submarine.sh(form=simple)\necho ${name=x}", {}),
        ("%submarine.python(form=simple)\nx = '${name}$${all=1} ${password:key}'", {"key": "k"}),
    ]
    file = tmp_path / "note.zpln"
    listed = [
        {"id": f"p{n}", "text": text, "settings": {"params": params}}
        for n, (text, params) in enumerate(texts)
    ]
    file.write_text(
        json.dumps({"id": "2J", "name": "n", "noteParams": {"all": "2"}, "paragraphs": listed})
    )
    found = read_note_file(file).paragraphs
    assert [one.body for one in found[:3]] == [
        "x = 8",
        "run --memory 1G",
        "run --memory ${memory}",
    ]
    assert [one.body for one in found[4:]] == ["echo x", "x = '2 k'"]
    assert not any(one.unknown_form for one in found)
    report = check_migration(tmp_path)
    effects = [one.effect for one in report.findings]
    assert effects == [CHANGES, CHANGES, CHANGES, CHANGES, RUNS, RUNS]
    messages = [one.text for one in report.findings]
    assert messages[0].startswith("The text ${rate=0.1} is a form now")
    assert "--wait" in messages[1]
    assert messages[2].startswith("The form ${memory} is not filled in")
    assert messages[3].startswith("The form ${HOME} is left to the shell")
