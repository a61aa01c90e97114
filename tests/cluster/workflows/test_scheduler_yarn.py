"""A notebook under jupyter-scheduler whose jobs run on YARN, stopped in the middle."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import State
from tests.local.server.jupyter_server import BASE
from tests.local.workflows.scheduler_server import OURS, Scheduler
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

TRAIN = "%%submarine --only\nimport time\nprint('begun', flush=True)\ntime.sleep(3600)"


@pytest.fixture
def server(
    tmp_path: Path, minicluster: Minicluster, yarn_profile: Profile, session: Session
) -> Iterator[Scheduler]:
    session.backend().prepare()
    made = Scheduler(tmp_path, OURS)
    made.environment |= minicluster.environ()
    made.environment |= {
        "SUBMARINE_BACKEND": "yarn",
        "SUBMARINE_STATE_DIR": str(yarn_profile.state_dir),
    }
    made.own_group = True
    made.start()
    yield made
    made.stop()


def run_of(job: Job) -> str | None:
    """The run that a job belongs to; None while its submission has not written this yet."""
    try:
        return job.directory.spec().workflow_run
    except FileNotFoundError:
        return None


def begun(server: Scheduler, session: Session, run: str, number: int) -> list[Job]:
    """The jobs of a scheduled notebook, once so many of them train."""

    def training() -> list[Job]:
        time.sleep(0.5)
        assert server.job(run)["status"] != "FAILED", server.job(run)
        every = [session.job(record.job_id) for record in session.jobs()]
        own = [job for job in every if run_of(job) == run]
        return [job for job in own if b"begun" in job.log("stdout").data]

    until(lambda: len(training()) == number, "they train", 240.0)
    return training()


def check_ended(session: Session, jobs: list[Job]) -> None:
    for job in jobs:
        assert job.wait(120).state is State.CANCELLED
    handles = {job.id: job.handle for job in jobs if job.handle is not None}
    assert len(handles) == len(jobs)

    def stages() -> set[Stage]:
        return {seen.stage for seen in session.backend("yarn").observe(handles).values()}

    until(lambda: stages() == {Stage.ENDED}, "the end of all")


def test_a_stop_ends_the_applications(server: Scheduler, session: Session) -> None:
    """One job of one task and a gang of two, which run beside each other."""
    one = "%submarine run one --memory 256M"
    run = server.create(server.write("long.ipynb", TRAIN, one, f"{one} --worker 2"))
    jobs = begun(server, session, run, 2)
    answer = server.call("PATCH", f"{BASE}scheduler/jobs/{run}", {"status": "STOPPED"})
    assert answer.status == 204
    check_ended(session, jobs)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name
)
def test_a_server_that_is_ended_leaves_no_application(
    server: Scheduler, session: Session, number: signal.Signals
) -> None:
    run = server.create(server.write("long.ipynb", TRAIN, "%submarine run one --memory 256M"))
    jobs = begun(server, session, run, 1)
    server.end(number)
    check_ended(session, jobs)
    server.start()
    until(lambda: server.job(run)["status"] == "FAILED", "its status")
