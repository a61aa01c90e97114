"""The examples of docs/extending.md: one package, installed and run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest

from tests.local.jobs.installed_package import SUBMARINE, install, pytest_in, python

PAGE = Path(__file__).resolve().parents[3] / "docs" / "extending.md"
_BLOCK = re.compile(r"^```\w+ title=\"([\w.]+)\"\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CELL = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell(config=config)
shell.run_cell("%load_ext submarine_magics")
shell.run_cell("%%submarine abacus\\n3\\n4\\n")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the files of the page."""
    folder = tmp_path_factory.mktemp("package")
    for name, source in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(source, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(package, tmp_path_factory.mktemp("site"))


def test_the_verb(site: Path, tmp_path: Path) -> None:
    assert python(site, tmp_path, *SUBMARINE, "beads", "3").stdout == "ooo\n"
    done = python(site, tmp_path, *SUBMARINE, "beads", "3", "--json")
    assert json.loads(done.stdout) == {"beads": 3}
    refused = python(site, tmp_path, *SUBMARINE, "beads", "--", "-1")
    assert refused.returncode == 2
    assert "An abacus has no negative numbers. Give 0 or more." in refused.stderr


def test_the_cell(site: Path, tmp_path: Path) -> None:
    done = python(site, tmp_path, "-c", _CELL)
    assert "7 beads" in done.stdout, done.stderr


def test_the_runner(site: Path, tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell("print(6 * 7)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "fit.ipynb")
    done = python(site, tmp_path, *SUBMARINE, "run", "fit.ipynb", "-o", "out.ipynb")
    assert done.stdout == "The abacus runs fit.ipynb.\n", done.stderr


def test_the_backend(site: Path, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello')\n", encoding="utf-8")
    run = (*SUBMARINE, "run", "hello.py", "--backend", "abacus", "--wait")
    done = python(site, tmp_path, *run)
    assert "hello" in done.stdout, done.stderr
    refused = python(site, tmp_path, *run, "--worker", "4", "--conf", "abacus_beads=3")
    assert refused.returncode == 2
    assert "The job has 4 tasks; the abacus has 3 beads." in refused.stderr


def test_the_contract_test_suite(package: Path, site: Path, tmp_path: Path) -> None:
    (tmp_path / "test_abacus.py").write_bytes((package / "test_abacus.py").read_bytes())
    done = pytest_in(site, tmp_path, "test_abacus.py", "-k", "registered or plan or from_submit")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_papermill(package: Path, tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell("print(6 * 7)")]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    source, target = tmp_path / "source.ipynb", tmp_path / "target.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), source)
    done = python(tmp_path, tmp_path, str(package / "nightly.py"), str(source), str(target))
    assert done.returncode == 0, done.stderr
    written = nbformat.read(target, as_version=4)
    assert written.cells[-1].outputs[0]["text"] == "42\n"


def test_each_group_of_pyproject_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    project = (PAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    groups = re.findall(r"^\[project\.entry-points\.\"([\w.]+)\"\]", project, re.MULTILINE)
    assert len(groups) == 7
    assert [group for group in groups if f"`{group}`" not in text] == []
