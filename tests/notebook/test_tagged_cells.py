"""Cells with the tag ``submarine`` are collected with no magic in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebook.conftest import Notebook


def listed(notebook: Notebook) -> list[tuple[str, str, str]]:
    """(file, state, text) of the collected cells in order."""
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
    # The module of the program can be imported here at once.
    assert notebook.good("from model import f; f.__name__").result == {"text/plain": "'f'"}


def test_losing_the_tag_removes_and_the_line_has_the_last_word(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=["submarine"])
    notebook.good("a = 2", cell_id="one", tags=["submarine"])
    notebook.good("%%submarine --file other.py\nb = 1", cell_id="two", tags=["submarine"])
    assert [(f, t) for f, _, t in listed(notebook)] == [("main.py", "a = 2"), ("other.py", "b = 1")]
    notebook.good("a = 3", cell_id="one", tags=[])
    assert [f for f, _, _ in listed(notebook)] == ["other.py"]


def test_what_cannot_be_collected_runs_and_says_so(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=["submarine"])
    ran = notebook.good("a = !echo 2", cell_id="one", tags=["submarine"])
    assert "not in the program as it is now" in ran.stderr
    assert "line 1" in ran.stderr
    bad = notebook.good("b = 1", cell_id="two", tags=["submarine:../b.py"])
    assert "leads out of the program's directory" in bad.stderr
    assert notebook.run("c = ", cell_id="three", tags=["submarine"]).ename == "SyntaxError"
    assert [text for _, _, text in listed(notebook)] == ["a = 1"]


def test_odd_metadata_is_no_tag(notebook: Notebook) -> None:
    notebook.good("a = 1", cell_id="one", tags=[{"submarine": 1}, None, 7])  # type: ignore[list-item]
    notebook.good("b = 1", cell_id="two", tags="submarine")  # type: ignore[arg-type]
    assert listed(notebook) == []


def test_the_saved_document_knows_the_tags(notebook: Notebook) -> None:
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
