"""What a headless run makes of what happened: failures at their cells, jobs told, settings."""

from __future__ import annotations

import json
import sys
import types
from typing import Any, ClassVar

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.errors import UsageError
from submarine_workflows.headless.kernel import JobOutcomes, ReturnedValues, return_values_code
from submarine_workflows.headless.kernel.hidden_code import BARRIER_TYPE, RETURNED_TYPE
from submarine_workflows.headless.managed_run import JobReporter
from submarine_workflows.headless.report import Report
from submarine_workflows.headless.result import RunResult, show_failures
from submarine_workflows.headless.settings import Settings
from tests.notebooks import notebook

# What a kernel says


def test_failures_go_to_the_cells_that_started_the_jobs() -> None:
    made = notebook("a", "b", "c")
    for count, cell in enumerate(made.cells, start=1):
        cell.execution_count = count
    jobs = JobOutcomes()
    failures = [
        {
            "job_id": "j1",
            "cell_id": "cell-0",
            "ename": "E",
            "evalue": "v",
            "traceback": ["t1", "t2"],
        },
        {"job_id": "j2", "cell_id": None, "execution_count": 2},
        {"job_id": "j3", "cell_id": "gone"},
    ]
    jobs.add({BARRIER_TYPE: {"failed": failures, "detached": [{"job_id": "j4"}]}})
    assert jobs.received
    assert jobs.detached == ["j4"]
    show_failures(made, jobs)
    assert [len(cell.outputs) for cell in made.cells] == [1, 1, 1]
    assert made.cells[0].outputs[0].traceback == ["t1", "t2"]
    assert made.cells[1].outputs[0].evalue == "j2"
    assert made.metadata.papermill.exception is True
    assert {cell.metadata.papermill.status for cell in made.cells} == {"failed"}
    nbformat.validate(made)


@pytest.mark.parametrize(
    "said",
    [None, 1, [], {}, {"failed": 3}, {"failed": [1, None], "detached": 3}, {"detached": [None]}],
)
def test_nonsense_of_a_kernel_breaks_nothing(said: Any) -> None:
    jobs, returned = JobOutcomes(), ReturnedValues()
    lines: list[str] = []
    jobs.add({BARRIER_TYPE: said})
    returned.add({RETURNED_TYPE: said})
    reporter = JobReporter(lines.append)
    reporter.report({MIME_TYPE: said})
    show_failures(notebook(), jobs)
    assert jobs.failed == []
    assert lines == []
    assert returned.values == {}


def test_jobs_are_said_once_with_their_applications() -> None:
    lines: list[str] = []
    reporter = JobReporter(lines.append)
    application = "application_1700000000000_0001"
    for state, known in (
        ("SUBMITTING", None),
        ("PENDING", application),
        ("RUNNING", application),
        ("RUNNING", application),
        ("FAILED", application),
    ):
        record = {"application_id": known}
        reporter.report({MIME_TYPE: {"job_id": "a\x1b[2J", "state": state, "record": record}})
    assert [line.split(": ")[1] for line in lines] == ["SUBMITTING", "PENDING", "FAILED"]
    assert application in lines[1]
    assert "\x1b" not in "".join(lines)


# Wishes


def test_settings_of_papermill() -> None:
    environ = {
        "SUBMARINE_RUN_ID": "night",
        "SUBMARINE_RUN_TIMEOUT": "2h",
        "SUBMARINE_RUN_LEASE": "10m",
        "SUBMARINE_RUN_ON_INTERRUPT": "cancel",
    }
    keywords = {"timeout": 60, "run_timeout": 5, "log_output": True}
    settings = Settings.from_keywords(keywords, environ)
    assert keywords == {"timeout": 60, "log_output": True}
    assert settings == Settings(run_id="night", on_interrupt="cancel", lease=600.0, timeout=5)
    told = settings.headless()
    assert (told.run_id, told.on_interrupt, told.lease, told.barrier) == (
        "night",
        "cancel",
        600,
        True,
    )


def test_a_lease_of_seconds_is_warned_of() -> None:
    assert "With a lease of 10s, jobs may end" in Settings(lease=10.0).warning
    assert not Settings(lease=60.0).warning
    assert not Settings().warning


def test_a_notebook_without_our_extension_gets_advice_to_load_it() -> None:
    said = "UsageError: Line magic function `%submarine` not found."
    told = []
    for text in (said, "something else\n\x1b[31mred"):
        ending = RunResult(error=CellExecutionError(text, "UsageError", "no"))
        told.append(Report("a", "b", notebook("%submarine run x"), ending, 1.0).reason)
    assert "%load_ext submarine_magics" in told[0]
    assert told[1] == "A cell failed: something else red"


def test_jobs_of_a_run_with_an_id_are_left_for_the_next_attempt() -> None:
    assert Settings().action_for_jobs == "cancel"
    assert Settings(run_id="x").action_for_jobs == "detach"
    assert Settings(run_id="x", on_interrupt="cancel").action_for_jobs == "cancel"


@pytest.mark.parametrize(
    "environ",
    [
        {"SUBMARINE_RUN_ON_INTERRUPT": "ignore"},
        {"SUBMARINE_RUN_TIMEOUT": "soon"},
        {"SUBMARINE_RUN_ID": "x" * 500},
        {"SUBMARINE_RUN_ID": "a\nb"},
    ],
)
def test_settings_that_make_no_sense(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Settings.from_keywords({}, environ)


def test_an_invalid_duration_is_reported_with_its_source() -> None:
    with pytest.raises(UsageError, match=r"^SUBMARINE_RUN_LEASE: 'soon' is not a duration"):
        Settings.from_keywords({}, {"SUBMARINE_RUN_LEASE": "soon"})
    with pytest.raises(UsageError, match=r"^run_timeout: 'soon'"):
        Settings.from_keywords({"run_timeout": "soon"}, {"SUBMARINE_RUN_TIMEOUT": "2h"})


def test_values_that_json_has_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        user_ns: ClassVar[dict[str, Any]] = {"acc": 0.5, "odd": object(), "nan": float("nan")}

    shown: list[dict[str, Any]] = []
    display = types.SimpleNamespace(display=lambda data, raw: shown.append(data))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    # As the kernel does it.
    exec(return_values_code(["acc", "rows", "odd", "nan"]), {"get_ipython": Shell})
    returned = ReturnedValues()
    returned.add(json.loads(json.dumps(shown[0])))
    assert returned.values == {"acc": 0.5, "nan": "nan"}
    assert returned.missing == ["rows"]
    assert returned.unencodable == ["odd"]
