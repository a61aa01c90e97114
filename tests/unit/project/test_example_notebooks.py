"""The notebooks of the examples are written from the programs, and the docs show all of them."""

from __future__ import annotations

import pytest

from tests.example_programs import EXAMPLES, FOLDER, ROOT, description, notebook_of, programs

PAGE = ROOT / "docs" / "libraries.md"


@pytest.mark.parametrize("name", [path.stem for path in programs()])
def test_a_notebook_is_that_of_its_program(name: str) -> None:
    notebook = FOLDER / f"{name}.ipynb"
    assert notebook.read_text() == notebook_of(EXAMPLES / f"{name}.py"), (
        "run: python scripts/example_notebooks.py"
    )


def test_each_notebook_has_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {path.stem for path in programs()}


def test_the_docs_show_the_command_of_each_program() -> None:
    page = PAGE.read_text()
    for path in programs():
        assert description(path)[1] in page, path.name
