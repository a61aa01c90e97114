"""The text at the tracking URL of ended jobs, while ResourceManagers fail over."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.client import Job
from submarine_jobs.model import Resources, Role
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.submission import Submit
from tests.tracking_page import shown_at
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

KIND = "resourcemanager"
HOLD = "while ! test -e '{go}'; do sleep 0.1; done"


def kept_text(cluster: Minicluster, job: Job) -> str:
    """What the active ResourceManager's tracking URL of an ended application shows."""
    access = cluster.access("alice") if cluster.saved.settings.kerberos else None
    path = f"/apps/{(job.handle or {})['application_id']}"
    found: list[str] = []

    def kept() -> bool:
        app = job.backend.rm.get(path)["app"]  # type: ignore[attr-defined]
        if app["state"] != "FINISHED":
            return False
        assert app["finalStatus"] == "SUCCEEDED"
        found.append(shown_at(app["trackingUrl"], access))
        return f"job_id: {job.id}" in found[-1]

    until(kept, lambda: f"the text in the logs of the container: {found[-1:]}", 180)
    return found[-1]


def test_the_active_resourcemanager_gets_the_address(
    both: Minicluster, submit: Submit, go: Path
) -> None:
    command = HOLD.format(go=go)
    size = Resources(256)
    single = submit("pass", "single", command=command)
    roles = (Role("worker", 2, size, command=command),)
    gang = submit("pass", "gang", roles=roles, framework="any", policy="all")
    for job in (single, gang):
        until(lambda: job.record().state is State.RUNNING, "a running job", 180)  # noqa: B023
    killed = both.active(KIND)
    both.kill(killed)
    assert both.fail_over(KIND) != killed
    # The masters may not have registered again.
    go.touch()
    for job in (single, gang):
        assert job.wait(180).state is State.SUCCEEDED
        assert "state: SUCCEEDED" in kept_text(both, job)

    both.start()
    # In the order of the configuration, each kind of cluster has the standby first once.
    later = [submit("pass", "later", command="true") for _ in range(2)]
    for job in later:
        assert job.wait(180).state is State.SUCCEEDED
        assert "state: SUCCEEDED" in kept_text(both, job)
