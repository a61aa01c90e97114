"""What a notebook is made into before it runs: its format, parameters, cells, a line that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from submarine_jobs.errors import UsageError
from submarine_workflows.headless import document
from submarine_workflows.headless.document import (
    inject,
    parse_value,
    read_document,
    read_parameters,
)
from submarine_workflows.locations import urls as places
from tests.notebooks import notebook


def ids(made: Any) -> list[str]:
    return [cell["id"] for cell in made.cells]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nbformat": 4, "cells": 3}', '{"nbformat": "x"}', "\x00", "1"]
)
def test_what_is_no_notebook_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"x\.ipynb is not a notebook"):
        read_document(places.find_location(str(path)))


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": "python3", "language_info": None, "papermill": 7},
        {"kernelspec": {"name": ["x"]}, "language_info": "py"},
        {"kernelspec": None},
    ],
)
def test_metadata_of_another_form_is_no_end_of_a_run(
    metadata: dict[str, Any], tmp_path: Path
) -> None:
    odd = {"tags": "parameters", "papermill": "x"}
    cell = {"cell_type": "code", "id": "a", "metadata": odd, "source": "", "outputs": []}
    path = tmp_path / "odd.ipynb"
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": [cell]})
    )
    found, _ = read_document(places.find_location(str(path)))
    assert found.metadata == {}
    assert found.cells[0].metadata == {}


def test_a_notebook_of_format_3(tmp_path: Path) -> None:
    from papermill.iorw import load_notebook_node

    cell = {"cell_type": "code", "language": "python", "input": "x = 1", "outputs": []}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [cell]}]}
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps(old))
    found, had_ids = read_document(places.find_location(str(path)))
    assert not had_ids
    assert load_notebook_node(found).cells[0].source == "x = 1"


def test_parameters_for_a_kernel_that_papermill_does_not_know() -> None:
    with pytest.raises(UsageError, match="cannot be written for the kernel brainf"):
        inject(notebook("+"), {"n": 1}, "brainf", "brainf", print)


# Documents


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("3.5", 3.5),
        ("1e3", 1000.0),
        ("True", True),
        ("None", None),
        ("3a", "3a"),
        ("", ""),
    ],
)
def test_values_are_papermills(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_parameters_of_files_and_words(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("a: 1\nb: [1, 2]\nday: 2026-11-22\n")
    found = read_parameters([str(file)], [("a", "2", False), ("n", "3", True)])
    assert found == {"a": 2, "b": [1, 2], "day": "2026-11-22", "n": "3"}
    file.write_text("a: [1\nb: 2")
    with pytest.raises(UsageError, match=r"p.yaml, line \d is not valid YAML"):
        read_parameters([str(file)], [])
    file.write_text("- a")
    with pytest.raises(UsageError, match="contains no parameters"):
        read_parameters([str(file)], [])


@pytest.mark.parametrize(
    ("own", "tags", "first", "its_tags"),
    [
        ("%%submarine --file m.py\nn = 1", [], "%%submarine --file m.py", []),
        ("n = 1", ["submarine:m.py"], "# Parameters", ["submarine:m.py"]),
        ("n = 1", [], "# Parameters", []),
        ("%%submarine run x\nn = 1", [], "# Parameters", []),
    ],
)
def test_injected_parameters_are_collected_where_the_notebooks_own_are(
    own: str, tags: list[str], first: str, its_tags: list[str]
) -> None:
    made = notebook((own, ["parameters", *tags]), "print(n)")
    warned: list[str] = []
    made = inject(made, {"n": 2}, "python3", "python", warned.append)
    document.mark_injected_parameters(made)
    injected = made.cells[1]
    assert injected["id"] == "injected-parameters"
    assert injected.source.split("\n")[0] == first
    assert injected.source.rstrip().endswith("n = 2")
    assert [tag for tag in injected.metadata.tags if tag != "injected-parameters"] == its_tags
    assert ids(made) == ["cell-0", "injected-parameters", "cell-1"]


def test_an_unknown_parameter_is_said_and_set() -> None:
    warned: list[str] = []
    made = notebook(("date = 1", ["parameters"]))
    made = inject(made, {"dat": 2}, "python3", "python", warned.append)
    assert warned == ["warning: The notebook has no parameter dat; did you mean date?"]
    assert "dat = 2" in made.cells[1].source


def test_cells_without_ids_get_the_same_ones_each_time() -> None:
    first, second = notebook("a", "a", "b"), notebook("new", "a", "a", "b")
    document.assign_stable_ids(first, had_ids=False)
    document.assign_stable_ids(second, had_ids=False)
    assert ids(second)[1:] == ids(first)
    assert len(set(ids(second))) == 4
    nbformat.validate(first)
    kept = notebook("a")
    document.assign_stable_ids(kept, had_ids=True)
    assert ids(kept) == ["cell-0"]


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["cell-5"], [0, 1, 5]),
        (["slow"], [0, 1, 6]),
        (["summary"], [0, 1, 3, 5]),
        (["The  END"], [0, 1, 6]),
        (["summary", "cell-6"], [0, 1, 3, 5, 6]),
        (["details"], [0, 1, 5]),
    ],
)
def test_cells_by_their_names(names: list[str], left: list[int]) -> None:
    made = notebook(
        "%load_ext submarine_magics",
        ("n = 1", ["parameters"]),
        ("# Summary", [], "markdown"),
        "a = 1",
        ("## Details", [], "markdown"),
        "b = 2",
        ("c = 3", ["slow"]),
    )
    made.cells.insert(6, nbformat.v4.new_markdown_cell("# The end", id="end"))
    document.select_cells(made, names)
    assert ids(made) == [f"cell-{number}" for number in left]


@pytest.mark.parametrize(
    ("cells", "added"),
    [
        (["%%submarine\nacc = 1"], "submarine_job = %submarine run two-words --return acc"),
        (["%%submarine --only\nx = 1"], "submarine_job = %submarine run two-words"),
        (["%%submarine\nacc = 1", "%submarine run x"], None),
        (["%%submarine run x\nacc = 1"], None),
        (["acc = 1"], None),
    ],
)
def test_a_program_without_a_run_line_gets_one(cells: list[str], added: str | None) -> None:
    made = notebook(*cells)
    assert document.add_run_cell(made, "two words", (), ("acc", "rows")) is (added is not None)
    if added is not None:
        assert made.cells[-1].source.split("\n")[0] == added
        assert made.cells[-1]["id"] == "submarine-run"
