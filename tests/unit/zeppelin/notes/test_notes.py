"""Paragraphs as cells of a program, interpreters of the group, and metrics charts."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import submarine_jobs
import submarine_magics
import submarine_runtime
import submarine_workflows
from submarine_jobs.checks import check_program, missing_imports
from submarine_jobs.commands import execute
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.outputs import Row
from submarine_jobs.program import Cell
from submarine_zeppelin.display.chart import MAX_POINTS, MetricHistory, render_svg
from submarine_zeppelin.interface import ENTRIES, Context, NoteParagraph, Server, make_interpreter
from submarine_zeppelin.interface.entries import LEGACY_CLASSES
from submarine_zeppelin.notes import (
    build_note_bundle,
    collect_cells,
    other_python_cells,
    read_note,
    reword,
    reword_help,
    shell_files,
)
from submarine_zeppelin.notes.note import InterpreterNames, parse_header


def note(*paragraphs: tuple[str, str]) -> list[NoteParagraph]:
    return [NoteParagraph("2J", f"p{n}", *pair) for n, pair in enumerate(paragraphs, start=1)]


def cells(*paragraphs: tuple[str, str]) -> list[Cell]:
    return collect_cells(read_note(note(*paragraphs), InterpreterNames())).cells()


@pytest.mark.parametrize(
    ("text", "name", "body", "line"),
    [
        ("%submarine.python\nx = 1\ny = 2", "submarine.python", "x = 1\ny = 2", 2),
        ("\n  %submarine.python(only) \nx = 1", "submarine.python", "x = 1", 3),
        ("%submarine.python x = 1\ny = 2", "submarine.python", "x = 1\ny = 2", 1),
        ("%submarine.python\r\n\r\nx = 1", "submarine.python", "\nx = 1", 2),
        ("%submarine run digits", "submarine", "run digits", 1),
        ("x = 1", "", "x = 1", 1),
        ("%", "", "%", 1),
        ("%md\n# %submarine.python", "md", "# %submarine.python", 2),
        ("", "", "", 1),
    ],
)
def test_parse_header(text: str, name: str, body: str, line: int) -> None:
    head = parse_header(text)
    assert (head.name, head.body, head.first_line) == (name, body, line)


@given(st.text())
def test_any_text_is_parsed(text: str) -> None:
    head = parse_header(text)
    assert head.first_line >= 1
    read_note(note(("", text)), InterpreterNames())


def test_titles_name_files() -> None:
    found = cells(
        ("model.py", "%submarine.python\nfirst = 1"),
        ("Data, as it comes", "%submarine.python\ndata = 2"),
        ("", "%md\nnot of it"),
        ("model.py", "%md\nnot of it either, whatever its title"),
        ("model.py", "%submarine.python\nsecond = 3"),
        ("", "%submarine.python(only)\ntrain = 4"),
        ("", "%python\nforeign = 5"),
        ("", "%submarine run digits"),
        ("", "%submarine.python\n\n"),
    )
    assert [(cell.filename, cell.source, cell.label) for cell in found] == [
        ("model.py", "first = 1", "¶1"),
        ("main.py", "data = 2", "¶2"),
        ("model.py", "second = 3", "¶5"),
        ("main.py", "train = 4", "¶6"),
    ]


def test_source_map_refers_to_paragraphs() -> None:
    paragraphs = read_note(
        note(
            ("model.py", "%submarine.python\n\na = 1"),
            ("model.py", "%submarine.python\nb = 2"),
            ("", "%submarine.python\nimport model"),
            ("run/prepare.sh", "%submarine.sh\necho 1"),
            ("run/prepare.sh", "%submarine.sh\necho 2"),
            ("", "%submarine.sh\necho not of the program"),
        ),
        InterpreterNames(),
    )
    bundle = build_note_bundle(paragraphs, collect_cells(paragraphs), "main.py")
    assert bundle.text("model.py") == "\na = 1\n\nb = 2\n"
    assert bundle.text("run/prepare.sh") == "echo 1\n\necho 2\n"
    assert sorted(bundle.files) == ["main.py", "model.py", "run/prepare.sh"]
    place = bundle.source_map.lookup("model.py", 4)
    assert place is not None
    assert (place.label, place.cell_id, place.line) == ("¶2", "p2", 2)
    place = bundle.source_map.lookup("model.py", 2)
    assert place is not None
    assert (place.label, place.line) == ("¶1", 3)


@pytest.mark.parametrize("title", ["../evil.py", "/etc/x.py", "os.py", "a b.py", "~/x.py"])
def test_invalid_python_titles_are_rejected(title: str) -> None:
    with pytest.raises(UsageError, match="Paragraph 1, "):
        cells((title, "%submarine.python\nx = 1"))


@pytest.mark.parametrize("title", ["../x.sh", "/x.sh", ".x.sh", "a b.sh"])
def test_invalid_shell_titles_are_rejected(title: str) -> None:
    with pytest.raises(UsageError, match="is not a valid file name"):
        shell_files(read_note(note((title, "%submarine.sh\necho")), InterpreterNames()))


def test_other_names_of_the_group_are_learned() -> None:
    found = InterpreterNames()
    assert found.entry_of("submarine.python") == "python"
    assert found.entry_of("python") is None
    assert found.entry_of("gpus.python") is None
    found.learn("python", "%gpus.python\nx = 1")
    assert found.entry_of("gpus.python") == "python"
    assert found.entry_of("gpus") == "submarine"
    found.learn("python", "%python\nx = 1")
    assert found.entry_of("python") == "python"
    assert found.entry_of("") == "submarine"
    assert found.entry_of("md") is None
    assert found.entry_of("spark.python") is None


def test_python_paragraphs_of_other_interpreters() -> None:
    paragraphs = read_note(
        note(
            ("", "%python\na = 1"), ("", "%spark.pyspark\nb = 2"), ("", "%sh\nc=3"), ("", "d = 4")
        ),
        InterpreterNames(),
    )
    assert [cell.label for cell in other_python_cells(paragraphs)] == ["¶1", "¶2"]


def test_messages_name_paragraphs() -> None:
    said = reword("Cell ¶3, line 2: x; cell ¶4 does. Add %%submarine to cell ¶4 and run it.")
    assert said == (
        "Paragraph 3, line 2: x; paragraph 4 does. "
        "Make paragraph 4 a %submarine.python paragraph of the program."
    )


def test_make_interpreter_with_current_and_legacy_class_names() -> None:
    class UnusedServer(Server):
        def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
            raise AssertionError

        def output(self, context: Context) -> None:  # type: ignore[override]
            raise AssertionError

    for name in [*(entry.class_name for entry in ENTRIES), *LEGACY_CLASSES]:
        make_interpreter(name, {}, UnusedServer(), "session").close()
    with pytest.raises(KeyError):
        make_interpreter("os.system", {}, UnusedServer(), "session")


def row(time: float, **scalars: float) -> Row:
    return Row(time, "worker:0", 1, 1, time, None, None, None, None, None, scalars)


def test_metrics_chart_escapes_names() -> None:
    evil = "<script>x"
    curves = MetricHistory()
    curves.add(row(float(n), **{evil: 1 / (n + 1), "loss": float("nan")}) for n in range(1000))
    assert list(curves.series) == [evil, "loss"]
    assert len(curves.series[evil]) <= 2 * MAX_POINTS
    assert curves.series[evil][-1] == (999.0, 1 / 1000)
    picture = render_svg(curves.series)
    assert "<script" not in picture
    assert "&lt;script&gt;x 0.001" in picture
    assert len(re.findall("<polyline", picture)) == 1
    assert len(picture) < 10_000
    assert render_svg({}) == ""
    # A single point is shown as a value.
    short = render_svg({"loss": [(1.0, 0.5)], evil: [(1.0, 2.0)]})
    assert "<svg" not in short
    assert "<script" not in short
    assert "loss 0.5" in short


def test_shell_files_are_not_checked_as_python() -> None:
    paragraphs = read_note(
        note(
            ("", "%submarine.python\nimport json\nprint(json)"),
            ("prepare.sh", "%submarine.sh\nset -e\nfor f in *; do echo $f; done"),
            # Also valid Python, with undefined names.
            ("data/echo.sh", "%submarine.sh\necho in sh"),
        ),
        InterpreterNames(),
    )
    collection = collect_cells(paragraphs)
    bundle = build_note_bundle(paragraphs, collection, "main.py")
    assert {"prepare.sh", "data/echo.sh"} < set(bundle.files)
    assert check_program(bundle, collection) == []
    assert missing_imports(bundle, sys.executable) == []


def test_help_in_a_note() -> None:
    said = reword(reword_help(grammar_help()))
    assert said.startswith("Usage: %submarine ")
    assert re.search(r"(?m)^  run +Run ", said)
    assert re.search(r"(?m)^  workflow +", said)
    assert not re.search(r"(?m)^  (kernel|minicluster|zeppelin) ", said)
    assert "minicluster" not in said
    assert "cells are collected" not in said
    for words in ("dashboard", "%submarine.python(only)", "%submarine.sh"):
        assert re.search(rf"(?m)^  {re.escape(words)} ", said)


def grammar_help() -> str:
    return execute(["--help"], Frontend()).text


@pytest.mark.parametrize(
    ("core", "note"),
    [
        (
            "No cell is collected, so there is no program to run. Put %%submarine on the first "
            "line of a cell and run that cell, or name a file.",
            "The note has no %submarine.python paragraph, so there is no program to run. Begin a "
            "paragraph with %submarine.python; it need not be run.",
        ),
        ("`submarine --help` lists them.", "`%submarine help` lists them."),
        ("`submarine list` shows the jobs.", "`%submarine list` shows the jobs."),
        ("`submarine minicluster start`", "`submarine minicluster start`"),
    ],
)
def test_commands_in_messages_are_reworded(core: str, note: str) -> None:
    assert reword(core) == note


@pytest.mark.slow
@pytest.mark.parametrize(
    "phrase",
    [
        "Add %%submarine to ",
        "Correct the cell and run it again",
        "Change the order of the cells in the notebook, and save it.",
        "No cell is collected",
        "Put %%submarine on the first line of a cell and run it.",
        "Put %%submarine on the first line of a cell and run that cell, or name a file.",
        " collected cell",
        "collected cells",
        "collect the cell that",
        "The notebook has no code cell called ",
        " was searched.",
        "Run notebook cells and ",
        "Show which cells are collected",
    ],
)
def test_reworded_phrases_occur_in_core_messages(phrase: str) -> None:
    assert phrase in core_strings()


@cache
def core_strings() -> str:
    """Return the string constants of the packages with messages that notes show."""
    packages = (submarine_jobs, submarine_magics, submarine_runtime, submarine_workflows)
    files = [file for each in packages for file in Path(each.__path__[0]).rglob("*.py")]
    constants = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    return "\n".join(
        node.value
        for node in constants
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
