"""Cells with the tag ``submarine`` are collected without a magic."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.conftest import Notebook


def listed(notebook: Notebook) -> list[tuple[str, str, str]]:
    """Return file, state and text of the collected cells, in order."""
    shown = json.loads(notebook.good("%submarine cells --json").stdout)
    return [(row["file"], row["state"], row["source"]) for row in shown["cells"]]


def test_a_tagged_cell_is_collected_as_it_runs(notebook: Notebook) -> None:
    ran = notebook.good("x = 3\nx + 4", cell_id="one", tags=["slow", "submarine"])
    assert ran.result == {"text/plain": "7"}
    assert (ran.stdout, ran.stderr) == ("", "")
    notebook.good("def f(): pass", cell_id="two", tags=["submarine:model.py"])
    notebook.good("y = 5", cell_id="three", tags=["submarines", "other"])
    assert [(file, text) for file, _, text in listed(notebook)] == [
        ("main.py", "x = 3\nx + 4"),
        ("model.py", "def f(): pass"),
    ]
    # The module of the program can be imported in the kernel at once.
    assert notebook.good("from model import f; f.__name__").result == {"text/plain": "'f'"}


def test_removing_the_tag_removes_and_the_line_takes_precedence(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=["submarine"])
    notebook.good("a = 2", cell_id="one", tags=["submarine"])
    notebook.good("%%submarine --file other.py\nb = 1", cell_id="two", tags=["submarine"])
    assert [(f, t) for f, _, t in listed(notebook)] == [("main.py", "a = 2"), ("other.py", "b = 1")]
    notebook.good("a = 3", cell_id="one", tags=[])
    assert [f for f, _, _ in listed(notebook)] == ["other.py"]


def test_an_invalid_tagged_cell_runs_with_a_warning(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=["submarine"])
    ran = notebook.good("a = !echo 2", cell_id="one", tags=["submarine"])
    assert "is not in the program" in ran.stderr
    assert "line 1" in ran.stderr
    bad = notebook.good("b = 1", cell_id="two", tags=["submarine:../b.py"])
    assert "leads out of the program's directory" in bad.stderr
    assert notebook.run("c = ", cell_id="three", tags=["submarine"]).ename == "SyntaxError"
    assert [text for _, _, text in listed(notebook)] == ["a = 1"]


def test_a_cell_tagged_only_is_collected_and_does_not_run(notebook: Notebook) -> None:
    ran = notebook.good("seen = 1\n1 / 0", cell_id="one", tags=["submarine-only"])
    assert ran.stdout == "Cell [1] is now part of main.py; it did not run here.\n"
    notebook.good("y = 2", cell_id="two", tags=["submarine-only:model.py", "submarine"])
    assert notebook.run("seen").ename == notebook.run("y").ename == "NameError"
    assert [(file, text) for file, _, text in listed(notebook)] == [
        ("main.py", "seen = 1\n1 / 0"),
        ("model.py", "y = 2"),
    ]
    # The line of the cell, another tag, and no tag: the newest takes effect.
    both = notebook.good("%%submarine\nz = 3", cell_id="three", tags=["submarine-only"])
    assert both.stdout == ""
    assert notebook.good("z").result == {"text/plain": "3"}
    assert notebook.good("y = 4\ny", cell_id="two").result == {"text/plain": "4"}
    assert [text for _, _, text in listed(notebook)] == ["seen = 1\n1 / 0", "z = 3"]


def test_only_the_tagged_cell_does_not_run(notebook: Notebook) -> None:
    # A cell that runs another one, blank lines, an invalid cell, and an empty cell.
    tag = ["submarine-only"]
    notebook.good("def later():\n    return get_ipython().run_cell('w = 5')", cell_id="a")
    notebook.good("later()\nw = w + 1", cell_id="b", tags=["submarine"])
    assert notebook.good("w").result == {"text/plain": "6"}
    notebook.good("\n\n  u = 0\n\n  v = 1\n", cell_id="c", tags=tag)
    assert notebook.run("v").ename == "NameError"
    assert "works in a notebook only" in notebook.run("v = 1; await g()", tags=tag).evalue
    assert notebook.good("  \n", cell_id="e", tags=tag).stdout == ""
    texts = [text for _, _, text in listed(notebook)]
    assert texts[0] == "later()\nw = w + 1"
    assert len(texts) == 2


def test_invalid_metadata_is_ignored(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=[{"submarine": 1}, None, 7])
    notebook.good("b = 1", cell_id="two", tags="submarine")
    assert listed(notebook) == []


def test_the_saved_document_has_the_tags(notebook: Notebook) -> None:
    cells = [
        new_code_cell("b = 2", id="two", metadata={"tags": ["submarine"]}),
        new_code_cell("a = 1", id="one", metadata={"tags": ["submarine"]}),
        new_code_cell("c = 3", id="three", metadata={"tags": ["submarine"]}),
    ]
    path = Path(notebook.folder) / "n.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    notebook.good(f"import os\nos.environ['JPY_SESSION_NAME'] = {str(path)!r}")
    notebook.good("a = 1", cell_id="one", tags=["submarine"])
    notebook.good("b = 2", cell_id="two", tags=["submarine"])
    assert listed(notebook) == [("main.py", "current", "b = 2"), ("main.py", "current", "a = 1")]
    assert json.loads(notebook.good("%submarine cells --json").stdout)["not_run"] == 1


def test_a_job_of_tagged_cells_fails_with_the_line_of_the_cell(notebook: Notebook) -> None:
    notebook.good("def f(x):\n    return 1 / x", cell_id="one", tags=["submarine"])
    notebook.good("import os", cell_id="two", tags=["submarine"])
    notebook.good("if 'SUBMARINE_JOB_ID' in os.environ:\n    f(0)", cell_id="3", tags=["submarine"])
    failed = notebook.run("%submarine run tagged --wait")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", failed.traceback)
    assert "Cell In[3], line 2" in plain
    assert "Cell In[1], line 2, in f()" in plain
    assert "----> 2     return 1 / x" in plain
