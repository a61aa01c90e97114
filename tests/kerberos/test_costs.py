"""Calls to the cluster: those of a cluster without Kerberos, and two of each job for tokens."""

from __future__ import annotations

import io
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import tag_of
from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit import submit
from submarine_minicluster import Minicluster
from submarine_runtime.cluster_http import HttpClient, NoAnswerError
from submarine_runtime.protocol import State
from submarine_runtime.yarn import ACTIVE_STATES, ALL_DETAILS, TAG, TYPES
from tests.cluster.jobs.test_job_costs_yarn import MOST_FILES, MOST_OPERATIONS, RENEWED
from tests.cluster.own_cluster import own_profile
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

JOBS = 5
#: Requests of a submission to the ResourceManager without Kerberos (``docs/yarn.md``).
REQUESTS = 3
#: One token of each service.
TOKENS = 2


@pytest.fixture
def session(
    kerberos_minicluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    values = kerberos_minicluster.environ("alice")
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    with own_profile(values, tmp_path / "state") as profile:
        yield Session(profile)


def operations(backend: YarnBackend) -> int:
    """The NameNode's counter of operations on files."""
    time.sleep(RENEWED)
    client = HttpClient(backend.conf.webhdfs, access=backend.identity.access, timeout=10.0)
    query = {"qry": "Hadoop:service=NameNode,name=NameNodeActivity"}
    return int(client.request("GET", "/jmx", query).json()["beans"][0]["TotalFileOps"])


@pytest.mark.timeout(600)
def test_a_job_makes_the_calls_of_a_cluster_without_kerberos(session: Session) -> None:
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("main.py", "pass")
    spec = JobSpec(
        name="cost",
        backend="yarn",
        roles=(Role(resources=Resources(256, 1, 0)),),
        python=sys.executable,
        framework="any",
        bundle_digest="0" * 64,
    )
    submit(session, spec, stream.getvalue()).wait_success(timeout=240)  # what is uploaded once
    before = operations(backend)
    requests, own, files = [], [], []
    for _ in range(JOBS):
        calls = backend.rm.calls
        job = submit(session, spec, stream.getvalue())
        requests.append(backend.rm.calls - calls)
        used = job.wait_success(timeout=180).resources["used"]
        own.append(used["namenode_operations"])
        files.append(len(backend.storage.walk(job.directory.path)))
    found = (operations(backend) - before) / JOBS
    print(f"requests {requests}, operations of a job {found:.1f}, by itself {own}, files {files}")
    assert max(requests) <= REQUESTS + TOKENS
    assert sum(own) / JOBS <= found <= MOST_OPERATIONS + TOKENS
    assert max(files) <= MOST_FILES


def test_the_bounds_of_requests_hold_with_a_ticket(session: Session) -> None:
    """Filters and maximum sizes; many jobs are polled by one request, without a new sign-in."""
    backend = session.backend()
    assert isinstance(backend, YarnBackend)
    program = JobSpec(
        name="bounds",
        backend="yarn",
        roles=(Role(resources=Resources(256, 1, 0), command="exec sleep 600"),),
        framework="any",
    )
    jobs = [session.submit(program, None) for _ in range(2)]
    try:
        until(lambda: all(job.record().state is State.RUNNING for job in jobs), "two jobs", 180)
        ours = {str((job.handle or {})["application_id"]) for job in jobs}

        def listed(**query: str) -> dict[str, dict[str, Any]]:
            states = ",".join(ACTIVE_STATES)
            answer = backend.rm.get("/apps", states=states, deSelects=ALL_DETAILS, **query)
            apps = ((answer or {}).get("apps") or {}).get("app") or []
            return {str(app["id"]): app for app in apps}

        mine = {"user": "alice", "applicationTags": TAG, "applicationTypes": TYPES}
        assert ours <= listed(**mine).keys()
        assert all(app["user"] == "alice" for app in listed(**mine).values())
        assert not any(app.get("resourceRequests") for app in listed(**mine).values())
        assert len(listed(**mine, limit="1")) == 1
        assert not listed(user="bob", applicationTags=TAG, applicationTypes=TYPES)
        for job in jobs:
            identity = str((job.handle or {})["application_id"])
            assert listed(applicationTags=tag_of(job.id)).keys() == {identity}

        calls = backend.rm.calls
        observed = backend.observe({job.id: job.handle or {} for job in jobs})
        assert all(one.active for one in observed.values())
        assert backend.rm.calls - calls == 1

        client = HttpClient([backend.rm.url], access=backend.identity.access, timeout=10.0)
        with pytest.raises(NoAnswerError) as caught:
            client.request("GET", "/ws/v1/cluster/nodes", limit=100)
        # Neither a second sign-in nor another server would make the answer shorter.
        assert (caught.value.too_long, client.calls) == (True, 1)
    finally:
        for job in jobs:
            job.cancel("the test is over")
