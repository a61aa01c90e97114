"""A notebook under jupyter-scheduler whose jobs run on YARN, stopped in the middle."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from submarine_jobs.backends.base import Stage
from submarine_jobs.job import Job
from submarine_jobs.profile import Profile
from submarine_jobs.session import Session
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol.states import State
from tests.local.scheduler_rig import BASE, OURS, Scheduler

from .training import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

TRAIN = "%%submarine --only\nimport time\nprint('begun', flush=True)\ntime.sleep(3600)"


def test_a_stop_ends_the_applications(
    tmp_path: Path, minicluster: Minicluster, yarn_profile: Profile, session: Session
) -> None:
    """One job of one task and a gang of two, which run beside each other."""
    server = Scheduler(tmp_path, OURS)
    server.environment |= minicluster.environ()
    server.environment |= {
        "SUBMARINE_BACKEND": "yarn",
        "SUBMARINE_STATE_DIR": str(yarn_profile.state_dir),
    }
    server.start()
    try:
        one = "%submarine run one --memory 256M"
        run = server.create(server.write("long.ipynb", TRAIN, one, f"{one} --worker 2"))

        def training() -> list[Job]:
            time.sleep(0.5)
            assert server.job(run)["status"] != "FAILED", server.job(run)
            every = [session.job(record.job_id) for record in session.jobs()]
            own = [job for job in every if job.directory.spec().workflow_run == run]
            return [job for job in own if b"begun" in job.log("stdout").data]

        until("two jobs", lambda: len(training()) == 2, 240.0)
        jobs = training()
        answer = server.call("PATCH", f"{BASE}scheduler/jobs/{run}", {"status": "STOPPED"})
        assert answer.status == 204
        for job in jobs:
            assert job.wait(120).state is State.CANCELLED
        handles = {job.id: job.handle for job in jobs if job.handle is not None}
        assert len(handles) == 2

        def stages() -> set[Stage]:
            return {seen.stage for seen in session.backend("yarn").observe(handles).values()}

        until("the end of both", lambda: stages() == {Stage.ENDED})
    finally:
        server.stop()
