"""The filters of our requests for lists, on a real ResourceManager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import tag_of
from submarine_jobs.model import Profile
from submarine_runtime.yarn import ACTIVE_STATES, ALL_DETAILS, TAG, TYPES, applications_query
from tests.cluster.yarn_jobs import make_submission, until_stage

pytestmark = pytest.mark.cluster

HELD = "import os, time\nwhile not os.path.exists({go!r}): time.sleep(0.05)\n"


def test_the_lists_of_applications_are_filtered_by_the_resourcemanager(
    yarn_profile: Profile, tmp_path: Path
) -> None:
    backend = YarnBackend(yarn_profile)
    go = tmp_path / "go"
    submissions = [make_submission(backend, HELD.format(go=str(go))) for _ in range(2)]
    handles = [backend.submit(submission) for submission in submissions]
    try:
        for handle in handles:
            until_stage(backend, handle, Stage.RUNNING)
        ours = {str(handle["application_id"]) for handle in handles}
        states = ",".join(ACTIVE_STATES)

        def listed(**query: str) -> list[dict[str, Any]]:
            answer = backend.rm.get("/apps", states=states, **query)
            return list(((answer or {}).get("apps") or {}).get("app") or [])

        mine = {"user": backend.user, "applicationTags": TAG, "applicationTypes": TYPES}
        whole = {app["id"]: app for app in listed(**mine)}
        assert ours <= whole.keys()
        assert {app["user"] for app in whole.values()} == {backend.user}
        short = {app["id"]: app for app in listed(**mine, deSelects=ALL_DETAILS)}
        assert ours <= short.keys()
        for identity in ours:
            assert whole[identity]["resourceInfo"]["resourceUsagesByPartition"]
            # 3.3 keeps the names of what it leaves out.
            for name in ("resourceRequests", "resourceInfo", "timeouts"):
                assert not short[identity].get(name), name
            assert short[identity]["runningContainers"] == 1
        assert len(listed(limit="1")) == 1
        assert len(listed(**mine, limit="1")) == 1
        assert not listed(user="another")
        assert not listed(applicationTags="another")
        assert not listed(applicationTypes="SPARK", applicationTags=TAG)
        (one,) = listed(applicationTags=tag_of(submissions[0].agent.record.job_id))
        assert one["id"] == handles[0]["application_id"]
        # The query of the whole cluster, of a small one and of one with many applications.
        queue = {"queueName": "default", "numActiveApplications": 1000}
        crowded = {"scheduler": {"schedulerInfo": {"queues": {"queue": [queue]}}}}
        for scheduler in (backend.rm.get("/scheduler"), crowded):
            query = applications_query(scheduler, ACTIVE_STATES)
            del query["states"]
            found = {app["id"]: app for app in listed(**query)}
            assert ours <= found.keys()
            assert all(found[identity]["resourceInfo"] for identity in ours)
    finally:
        go.touch()
        for handle in handles:
            until_stage(backend, handle, Stage.ENDED)
