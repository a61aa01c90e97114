"""A gang on YARN whose owner goes: signs of life through HDFS and the port, then none."""

from __future__ import annotations

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.model import Resources, Role
from submarine_jobs.tracking.leases import leases
from submarine_runtime.protocol import EndReason, State, layout
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

LEASE = 8.0
PROGRAM = "import time\nwhile True: print('trains', flush=True); time.sleep(1)"


def test_a_gang_whose_owner_is_gone_ends_and_gives_its_containers_back(submit: Submit) -> None:
    two = (Role("worker", 2, Resources(200, 1, 0)),)
    job = submit(PROGRAM, roles=two, lease=LEASE)
    # While it waits for containers there is no port: its owner is heard through HDFS.
    until(lambda: job.directory.read_json(layout.LEASE), "a sign")
    until(lambda: job.record().state is State.RUNNING, "running")
    assert job.id in leases().held
    leases().stop_renewing(job.id)
    record = job.wait(120)
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.LEASE_EXPIRED)
    assert record.detail == "The job's lease was not renewed for 8 s."
    assert {task.state for task in record.tasks} == {State.CANCELLED}
    assert b"trains" in job.log("stdout").data
    assert job.handle is not None
    handles = {job.id: job.handle}
    until(lambda: job.backend.observe(handles)[job.id].stage is Stage.ENDED, "its end")
