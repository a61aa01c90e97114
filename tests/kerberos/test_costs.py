"""Calls of a job to the cluster: those of a cluster without Kerberos, and two for tokens."""

from __future__ import annotations

import io
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.submit import submit
from submarine_minicluster import Minicluster
from submarine_runtime.cluster_http import HttpClient
from tests.cluster.jobs.test_job_costs_yarn import MOST_FILES, MOST_OPERATIONS, RENEWED
from tests.cluster.own_cluster import own_profile

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
