"""Broken connections to the ResourceManager, and one that restarts while a job runs."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from submarine_jobs.backends import Stage, Submission
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.cluster import ResourceManager
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import EndReason
from tests.cluster.yarn_jobs import look, make_submission, until_stage
from tests.proxy import TcpProxy

pytestmark = pytest.mark.cluster


class CuttingProxy(TcpProxy):
    """A TCP proxy whose next connection can lose the request, the reply, or be cut in the reply."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.fault: str | None = None
        self.faults = 0
        super().__init__(parts.port or 0, str(parts.hostname))
        self.url = f"http://127.0.0.1:{self.port}"

    def forward(self, near: socket.socket, far: socket.socket) -> None:
        while request := _request(near):
            fault, self.fault = self.fault, None
            if fault:
                self.faults += 1
            if fault == "request lost":
                return
            far.sendall(request)
            reply = far.recv(65536)
            if fault == "reply lost":
                return
            if fault == "cut in between":
                near.sendall(reply[: len(reply) // 2])
                return
            near.sendall(reply)


def _request(near: socket.socket) -> bytes:
    """One whole request: http.client sends head and body apart."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := near.recv(65536)):
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    while length and len(body) < int(length.group(1)):
        if not (piece := near.recv(65536)):
            return b""
        body += piece
    return head + b"\r\n\r\n" + body


@pytest.fixture
def backend(yarn_profile: Profile) -> YarnBackend:
    return YarnBackend(yarn_profile)


@pytest.fixture
def make(backend: YarnBackend) -> Callable[..., Submission]:
    return lambda agent, **fields: make_submission(backend, agent, **fields)


@pytest.mark.parametrize("fault", ["request lost", "reply lost", "cut in between"])
def test_a_cancel_whose_call_breaks_is_still_a_cancel(
    backend: YarnBackend, make: Callable[..., Submission], fault: str
) -> None:
    handle = backend.submit(make("import time; time.sleep(600)"))
    proxy = CuttingProxy(backend.rm.url)
    try:
        through = ResourceManager([proxy.url], timeout=10, access=backend.identity.access)
        through.get("/info")  # the connection is kept, so the next call meets the fault
        proxy.fault = fault
        assert through.kill(str(handle["application_id"]), "test")
        assert proxy.faults == 1
    finally:
        proxy.close()
    assert until_stage(backend, handle, Stage.ENDED).reason is EndReason.KILLED_ON_CLUSTER
    backend.stop(handle)


@pytest.mark.full
def test_a_resourcemanager_restarts_while_a_job_runs(
    minicluster: Minicluster,
    backend: YarnBackend,
    make: Callable[..., Submission],
    tmp_path: Path,
) -> None:
    """The job lives on, is not called lost in between, and ends as it should."""
    import psutil

    go = tmp_path / "go"
    source = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    handle = backend.submit(make(source))
    until_stage(backend, handle, Stage.RUNNING)
    master = next(
        process
        for process in psutil.process_iter(["cmdline"])
        if any("ResourceManager" in word for word in process.info["cmdline"] or [])
        and any(str(minicluster.layout.root) in word for word in process.info["cmdline"])
    )
    master.kill()
    short = ResourceManager(
        backend.conf.resourcemanagers, timeout=2, access=backend.identity.access
    )
    with pytest.raises(ClusterError, match="does not answer"):
        short.get("/info")
    minicluster.start()
    stages = [look(backend, handle).stage]
    go.touch()
    deadline = time.monotonic() + 120
    while stages[-1] is not Stage.ENDED:
        assert time.monotonic() < deadline, stages
        seen = look(backend, handle)
        stages.append(seen.stage)
        time.sleep(0.5)
    assert Stage.UNKNOWN not in stages
    assert seen.reason is EndReason.SUCCEEDED
