"""A local run of notebooks with jobs on YARN is killed in the middle: no application goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_workflows.runs import is_held
from tests.cluster.conftest import Shell
from tests.local.workflows.airflow_home import Airflow, check_killed
from tests.local.workflows.workflow_runs import Training
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]


@pytest.fixture
def flows(shell: Shell, tmp_path: Path) -> Iterator[Training]:
    found = Training(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_application_and_goes_on_later(
    flows: Training, number: int
) -> None:
    process, pid = flows.begin()
    process.send_signal(number)
    process.communicate(timeout=120)
    flows.check_job_ended(pid)
    until(lambda: not is_held(flows.newest().guard_lock), "the keeper lives on")
    assert flows.statuses()["train"] == "KILLED"
    flows.file("go").touch()
    outcome = flows.do("run", "--resume", "w")
    assert outcome.exit_code == 0, outcome.text
    assert flows.file("report-0.9").exists()
    assert sorted(job["state"] for job in flows.jobs()) == ["CANCELLED", "SUCCEEDED"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name
)
def test_a_run_under_airflow_that_is_ended_leaves_no_application(
    flows: Training, session: Session, tmp_path: Path, number: signal.Signals
) -> None:
    session.backend().prepare()  # its driver is this process's then, and not one of the run's
    check_killed(Airflow(tmp_path, {}), flows, number)
