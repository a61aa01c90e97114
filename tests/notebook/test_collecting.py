"""Cells are collected, replaced, removed and ordered like in the notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.conftest import Notebook, Ran


def said(ran: Ran) -> str:
    """Return the text of all outputs."""
    shown = [*ran.displays, *ran.updates]
    return ran.stdout + ran.stderr + "".join(item["data"]["text/plain"] for item in shown)


def listed(notebook: Notebook) -> list[tuple[str, str]]:
    """Return label and first line of the collected cells, in order."""
    shown = json.loads(notebook.good("%submarine cells --json").stdout)
    return [(row["file"], row["source"].split("\n")[0]) for row in shown["cells"]]


def test_a_collected_cell_runs_in_the_kernel(notebook: Notebook) -> None:
    ran = notebook.good("%%submarine\nimport math\nx = 3\nx + 4")
    assert ran.result == {"text/plain": "7"}
    assert notebook.good("x").result == {"text/plain": "3"}
    assert listed(notebook) == [("main.py", "import math")]


def test_its_traceback_is_that_of_a_normal_cell(notebook: Notebook) -> None:
    failed = notebook.run("%%submarine --file model.py\n\ndef f(x):\n    return 1 / x\n\nf(0)")
    assert failed.ename == "ZeroDivisionError"
    plain = _plain(failed.traceback)
    assert "Cell In[1], line 6" in plain
    assert "----> 4     return 1 / x" in plain
    assert "submarine_magics" not in plain
    assert "run_line_magic" not in plain
    assert [file for file, _ in listed(notebook)] == ["model.py"]


def test_running_again_replaces_and_removing_the_mark_removes(notebook: Notebook) -> None:
    notebook.good("%%submarine\na = 1", cell_id="one")
    notebook.good("%%submarine\nb = 2", cell_id="two")
    notebook.good("%%submarine\na = 10", cell_id="one")
    assert listed(notebook) == [("main.py", "a = 10"), ("main.py", "b = 2")]
    notebook.good("a = 10", cell_id="one")
    assert listed(notebook) == [("main.py", "b = 2")]
    notebook.good("1", cell_id="three", deleted=["two"])
    assert listed(notebook) == []


def test_only_does_not_run_in_the_kernel(notebook: Notebook) -> None:
    ran = notebook.good("%%submarine --only\nraise SystemExit('not here')")
    assert "did not run here" in ran.stdout
    assert listed(notebook) == [("main.py", "raise SystemExit('not here')")]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%submarine\n", "the cell body is empty"),
        ("%%submarine\n  \n\n", "no code below"),
        ("%%submarine --fil x.py\nx = 1", "no option"),
        ("%%submarine --file ../x.py\nx = 1", "leads out"),
        ("%%submarine --file json.py\nx = 1", "hide"),
        ("%%submarine list\nx = 1", 'does not know "list"'),
        ("%%submarine\nx = await y", "await outside a function"),
        ("%%submarine\nfiles = !ls", "assigns the output of a shell command"),
        ("%%time\n%%submarine\nx = 1", "not on the first line"),
        ("%submarine nonsense", "No such command"),
        ("%submarine run x --num_ps 2", "--ps 2 without workers has no tasks to serve"),
        ("%submarine run 'x", "quotes"),
        ("%submarine run x", "No cell is collected"),
        ("%submarine show nothing-like-this", "nothing-like-this"),
    ],
)
def test_errors_are_one_sentence_and_fail_the_cell(
    shared_notebook: Notebook, cell: str, words: str
) -> None:
    ran = shared_notebook.run(cell)
    assert ran.status == "error"
    shown = ran.traceback + ran.stderr
    assert words in shown
    assert "Traceback" not in shown
    assert 'File "' not in shown
    assert listed(shared_notebook) == []


def test_lines_that_are_left_out_are_reported(notebook: Notebook) -> None:
    ran = notebook.good("%%submarine\n!echo hello\nx = 1")
    assert "line 2: a shell command was left out of the program: !echo hello" in ran.stdout
    assert "hello" in ran.stdout.replace("!echo hello", "")


def test_files_of_the_program_can_be_imported_in_the_kernel(notebook: Notebook) -> None:
    notebook.good("%%submarine --file model.py\ndef f():\n    return 1", cell_id="m")
    notebook.good("%%submarine --file pkg/deep.py\nfrom model import f\ng = f() + 1")
    ran = notebook.good("%%submarine\nfrom model import f\nfrom pkg.deep import g\nf(), g")
    assert ran.result == {"text/plain": "(1, 2)"}
    notebook.good("%%submarine --file model.py\ndef f():\n    return 5", cell_id="m")
    assert notebook.good("import model\nmodel.f()").result == {"text/plain": "5"}


def test_order_is_that_of_the_saved_document(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = notebook.folder / "mine.ipynb"
    cells = [new_code_cell(f"%%submarine\n{name} = 1", id=name) for name in ("first", "second")]
    nbformat.write(new_notebook(cells=cells), path)
    notebook.good(f"import os\nos.environ['JPY_SESSION_NAME'] = {str(path)!r}")
    notebook.good("%%submarine\nsecond = 1", cell_id="second")
    notebook.good("%%submarine\nfirst = 1", cell_id="first")
    assert [line for _, line in listed(notebook)] == ["first = 1", "second = 1"]
    nbformat.write(new_notebook(cells=cells[1:]), path)
    assert [line for _, line in listed(notebook)] == ["second = 1"]


def test_front_ends_without_ids_get_a_replacement_by_the_document(notebook: Notebook) -> None:
    path = notebook.folder / "mine.ipynb"
    _save(path, "a = 1", "b = 1")
    notebook.good(f"__vsc_ipynb_file__ = {str(path)!r}")
    notebook.good("%%submarine\na = 1")
    notebook.good("%%submarine\nb = 1")
    _save(path, "a = 2", "b = 1")
    notebook.good("%%submarine\na = 2")
    assert [line for _, line in listed(notebook)] == ["a = 2", "b = 1"]


def test_cells_and_script_are_shown(notebook: Notebook) -> None:
    notebook.good("%%submarine --file model.py\nx = '<b>'")
    notebook.good("%%submarine\nimport model")
    cells = notebook.good("%submarine cells").displays[0]["data"]
    assert "model.py" in cells["text/plain"]
    assert "x = &#x27;&lt;b&gt;&#x27;" in cells["text/html"]
    script = notebook.good("%submarine script").displays[0]["data"]
    assert "import model" in script["text/plain"]
    assert "<b>'" not in script["text/html"]
    notebook.good("%submarine clear")
    assert listed(notebook) == []


def test_async_cells_and_line_numbers_do_not_change(notebook: Notebook) -> None:
    ran = notebook.good("import asyncio\nawait asyncio.sleep(0, 5)")
    assert ran.result == {"text/plain": "5"}
    ran = notebook.good("%%submarine\nasync def f():\n    return 6\n")
    assert notebook.good("await f()").result == {"text/plain": "6"}
    ran = notebook.good("%%submarine\nfrom __future__ import annotations\nx: Nothing = 1\nx")
    assert ran.result == {"text/plain": "1"}


def _save(path: Path, *bodies: str) -> None:
    notebook = new_notebook(cells=[new_code_cell(f"%%submarine\n{body}") for body in bodies])
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]
    nbformat.write(notebook, path)


def _plain(text: str) -> str:
    import re

    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_written_files_are_collected_and_cells_that_raised_are_reported(
    notebook: Notebook,
) -> None:
    write = "%%writefile {}helper.py\nVALUE = {}\nif __name__ == '__main__':\n    input"
    notebook.good(write.format("", 1), cell_id="w1")
    notebook.good(write.format("./", 2), cell_id="w2")
    notebook.good("%%writefile -a helper.py\n\nMORE = VALUE + 1", cell_id="w3")
    notebook.good("%%writefile notes.txt\nno Python file")
    notebook.good(
        "%%submarine\nimport helper\nprint('sum', helper.VALUE + helper.MORE)", cell_id="m"
    )
    assert notebook.good("helper.__file__").result == {
        "text/plain": repr(str(notebook.folder / "helper.py"))
    }
    shown = notebook.good("%submarine script --json").stdout
    assert "VALUE = 2" in shown
    assert "VALUE = 1" not in shown
    ran = notebook.good("%submarine run demo --wait")
    assert "sum 5" in ran.updates[-1]["data"]["text/plain"]
    assert "raised" not in ran.stdout
    failed = notebook.run("%%submarine\nimport helper\n\nhelper.missing", cell_id="m")
    assert failed.ename == "AttributeError"
    ran = notebook.good("%submarine run demo --dry-run")
    assert re.search(r"Cell \[\d+\] raised AttributeError in line 4 when it ran", said(ran))
    notebook.good("%%submarine\nimport helper", cell_id="m")
    assert "raised" not in said(notebook.good("%submarine run demo --dry-run"))
