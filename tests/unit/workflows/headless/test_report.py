"""The report of a run that failed or could not begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from submarine_jobs.commands import execute
from submarine_jobs.commands.run import NotebookRun
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.frontends import TerminalFrontend
from submarine_workflows.headless.report import Report
from submarine_workflows.headless.result import RunResult, StopReason

CARD = """\
copy  copy-1  FAILED after 1 s
  Phases: run 1 s
  Log of worker:0:
  | line 1
  | no data.csv"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("SUBMARINE_WORKFLOW", "SUBMARINE_WORKFLOW_RUN", "SUBMARINE_WORKFLOW_NODE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def failed() -> Any:
    """A notebook whose one job, of a shell command, has failed."""
    cell = nbformat.v4.new_code_cell("%submarine run copy", id="c")
    data = {MIME_TYPE: {"state": "FAILED"}, "text/plain": CARD}
    error = {"ename": "JobFailedError", "evalue": "Exit code 3", "traceback": ["JobFailedError: 3"]}
    cell.execution_count = 1
    cell.outputs = [
        nbformat.v4.new_output("display_data", data),
        nbformat.v4.new_output("error", **error),
    ]
    return nbformat.v4.new_notebook(cells=[cell])


def told(folder: Path) -> dict[str, Any]:
    notice: dict[str, Any] = json.loads((folder / "notice.json").read_text())
    return notice


def test_a_run_that_cannot_begin_is_reported(folder: Path) -> None:
    words = "run none.ipynb -o out.ipynb --execute --notify"
    with pytest.raises(UsageError, match=r"none\.ipynb cannot be read"):
        execute([*words.split(), "tee notice.json"], TerminalFrontend(json_asked=False))
    notice = told(folder)
    assert notice["state"] == "FAILED"
    assert "none.ipynb cannot be read" in notice["reason"]
    assert notice["notebook"] == "none.ipynb"
    assert notice["link"] == str(folder / "out.ipynb")


def test_a_failed_job_of_a_command_is_reported_with_its_last_lines(folder: Path) -> None:
    request = NotebookRun("a.ipynb", notify="tee notice.json")
    given = {"db_password": "line", "steps": 3}
    report = Report("a.ipynb", "out/b.ipynb", failed(), RunResult(), 2.0, given)
    outcome = report.outcome(TerminalFrontend(json_asked=False), request)
    assert outcome.exit_code == 1
    assert outcome.text == (
        "out/b.ipynb    failed after 2s: Cell [1] failed: JobFailedError: Exit code 3"
    )
    notice = told(folder)
    # A value that came from a file of parameters is as secret as one that was typed.
    assert notice["log"] == "*** 1\nno data.csv\nJobFailedError: 3"
    assert notice["link"] == str(folder / "out/b.ipynb")


def test_the_log_of_an_error_is_what_a_terminal_shows(folder: Path) -> None:
    notebook = failed()
    lines = ["\x1b[31mValueError\x1b[39m: x", "  10%\r 100%", "\x1b]0;title\x07end"]
    notebook.cells[0].outputs[1]["traceback"] = lines
    request = NotebookRun("a.ipynb", notify="tee notice.json")
    report = Report("a.ipynb", "out/b.ipynb", notebook, RunResult(), 2.0)
    report.outcome(TerminalFrontend(json_asked=False), request)
    assert told(folder)["log"].splitlines() == ["ValueError: x", " 100%", "end"]


def test_why_a_run_failed_is_not_lost_with_its_output(folder: Path) -> None:
    away = StorageError("The NameNode is away.", "It is in /home/me/b.ipynb.")
    for ending, code, said in (
        (
            RunResult(save_error=away),
            1,
            "Cell [1] failed: JobFailedError: Exit code 3. The NameNode",
        ),
        (
            RunResult(stop=StopReason("It was late.", 124), save_error=away),
            124,
            "It was late. The NameNode",
        ),
    ):
        report = Report("a.ipynb", "hdfs:///b.ipynb", failed(), ending, 2.0)
        outcome = report.outcome(TerminalFrontend(json_asked=False), NotebookRun("a.ipynb"))
        assert (outcome.exit_code, said in report.reason) == (code, True), report.reason
        assert "It is in /home/me/b.ipynb." in report.reason
        assert "was not saved there" in outcome.text
    empty = nbformat.v4.new_notebook()
    assert Report("a", "b", empty, RunResult(save_error=away), 1.0).exit_code == 3


def test_a_kernel_that_we_install_is_offered(folder: Path) -> None:
    made = nbformat.v4.new_notebook(metadata={})
    nbformat.write(made, folder / "a.ipynb")
    with pytest.raises(UsageError, match="submarine kernel install --user"):
        execute(
            ["run", "a.ipynb", "--execute", "--kernel", "submarine"],
            TerminalFrontend(json_asked=False),
        )
