"""A job knows the cell that launched it; what only looks like a job id is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from submarine_jobs.frontends import Frontend
from submarine_jobs.model import JobSpec
from submarine_magics.cells import NotebookCells
from submarine_magics.execution import Executions
from submarine_magics.frontend import NotebookFrontend
from submarine_runtime.protocol import layout


def test_the_frontend_names_the_cell_that_is_executed() -> None:
    shell = InteractiveShell()
    frontend = NotebookFrontend(shell, NotebookCells(lambda: None))
    before = frontend.launching_cell
    assert before is None, "nothing runs"
    executions = Executions.attach(shell)
    cell = "%submarine run"
    info = SimpleNamespace(raw_cell=cell, cell_id="cell-7", store_history=True, cell_meta=None)
    executions.begin(info)
    assert frontend.launching_cell == "cell-7"
    executions.detach()
    assert Frontend().launching_cell is None


def test_a_spec_keeps_it_and_an_older_one_has_none() -> None:
    spec = JobSpec("a", "local", notebook="/home/ada/a.ipynb", cell_id="cell-7")
    assert JobSpec.from_bytes(spec.to_bytes()) == spec
    older = spec.to_bytes().replace(b'"cell_id": "cell-7",', b"")
    assert JobSpec.from_bytes(older).cell_id is None


@pytest.mark.parametrize("end", ["\n", "\r", "\x00", "/", " ", "\n/../x"])
def test_a_line_end_is_no_part_of_a_name(end: str) -> None:
    assert layout.is_job_id("a-20261120-7f3a")
    assert not layout.is_job_id("a-20261120-7f3a" + end)
    assert layout.parse_attempt("e1-a1" + end) is None
    with pytest.raises(ValueError, match="not a task"):
        layout.split_task("worker:0" + end)
