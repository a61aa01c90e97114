"""Export of notes as notebooks, and verbs with a text below them."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.commands import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_zeppelin.interface import NoteParagraph
from submarine_zeppelin.notes import Paragraph, export_notebook, parse_cell_verb, read_note
from submarine_zeppelin.notes.note import InterpreterNames

EXAMPLE = Path(__file__).parents[4] / "examples" / "zeppelin" / "digits.zpln"


def note_of(*paragraphs: tuple[str, str]) -> list[Paragraph]:
    listed = [NoteParagraph("2N", f"p{n}", *pair) for n, pair in enumerate(paragraphs, start=1)]
    return read_note(listed, InterpreterNames())


def test_parse_cell_verb() -> None:
    found = parse_cell_verb("\n# mine\nworkflow nightly --to cron\r\n\r\nnodes: []\n", 3, "2")
    assert found is not None
    words, body = found
    assert words == ["workflow", "nightly", "--to", "cron"]
    assert (body.text, body.first_line, body.cell) == ("\nnodes: []\n", 6, "Paragraph 2")
    assert parse_cell_verb("workflow nightly\n# a.job\ntype=noop", 1, "") is not None
    text = (
        "predict m@v --input x=/a --output /b\n# Scores.\nimport numpy\n\ndef predict(batch): ..."
    )
    found = parse_cell_verb(text, 1, "3")
    assert found is not None
    assert (found[0][0], found[1].first_line) == ("predict", 2)
    assert parse_cell_verb("predict m@v --input x=/a --output /b\nlist", 1, "3") is None
    for commands in ("workflow status\nlist", "workflow run a\n# later\n", "list\nnodes: []", ""):
        assert parse_cell_verb(commands, 1, "") is None


def test_export_of_a_note() -> None:
    found = note_of(
        ("", "%md\n# Title"),
        ("model.py", "%submarine.python\ndef f(): pass"),
        ("parameters", "%submarine.python(local)\nx = 1"),
        ("", "%submarine.python(only)\nf()"),
        ("prepare.sh", "%submarine.sh(only)\ntouch a"),
        ("", "%submarine.sh\nls"),
        ("", "%submarine\n# all\njob run --name a \\\n  --gpu 1\ndashboard\nworkflow run b\nlist"),
        ("", "%submarine workflow nightly\nnodes: []"),
        ("", "%submarine JOB_RUN"),
        ("", "%jdbc\nselect 1"),
    )
    made = export_notebook(found, "2N")
    assert [
        (cell["cell_type"], cell["metadata"], "".join(cell["source"]))
        for cell in made.document["cells"][1:]
    ] == [
        ("markdown", {}, "# Title"),
        ("code", {"tags": ["submarine:model.py"], "title": "model.py"}, "def f(): pass"),
        ("code", {"tags": ["parameters"], "title": "parameters"}, "x = 1"),
        ("code", {"tags": ["submarine-only"]}, "f()"),
        ("code", {}, "%%bash\nls"),
        (
            "code",
            {},
            "%submarine run --file ./prepare.sh --name a --gpu 1\n%submarine list",
        ),
    ]
    assert made.files == {"prepare.sh": b"touch a\n"}
    assert [line.partition(" is not exported: ")[2] for line in made.left_out] == [
        "it is a file of the program and is exported as a file.",
        "it defines a workflow.",
        "its form works in Zeppelin only.",
        "it belongs to %jdbc.",
    ]
    assert made.to_bytes() == export_notebook(found, "2N").to_bytes()


def test_cell_ids_are_unique_paragraph_ids() -> None:
    odd = [NoteParagraph("2N", name, "", "%md\nx") for name in ("2026_1", "a b", "a/b", "é" * 90)]
    made = export_notebook(read_note(odd, InterpreterNames()), "2N")
    nbformat.validate(nbformat.from_dict(made.document))
    assert [cell["id"] for cell in made.document["cells"][1:]][:3] == ["2026_1", "a-b", "a-b-2"]


def test_export_note_command(tmp_path: Path) -> None:
    target = tmp_path / "out.ipynb"
    words = ["zeppelin", "export-note", str(EXAMPLE), "-o", str(target)]
    for _ in range(2):
        assert execute(words, Frontend()).value["cells"] == 4
    nbformat.validate(nbformat.read(target, as_version=4))
    target.write_text(json.dumps({"metadata": {}, "cells": []}))
    with pytest.raises(UsageError, match="was not exported from a note"):
        execute(words, Frontend())
    execute([*words, "--force"], Frontend())
    for text in ("", "[]", '{"paragraphs": 3}'):
        wrong = tmp_path / "wrong.zpln"
        wrong.write_text(text)
        with pytest.raises(UsageError, match="is not a Zeppelin note"):
            execute(["zeppelin", "export-note", str(wrong)], Frontend())
