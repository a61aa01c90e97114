"""A submit to the driver whose TCP connection breaks, by a real proxy before the driver's port.

Whatever is lost, there is one application, its id is known, and the driver is not replaced.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.driver import DriverChannel
from submarine_jobs.model import Profile
from tests.cluster.yarn_jobs import application_ids, make_submission
from tests.proxy import TcpProxy

pytestmark = pytest.mark.cluster

FAULTS = ["request lost", "request cut", "reply lost", "reply cut"]


class BreakingProxy(TcpProxy):
    """Carries TLS between client and driver; once armed, the next submit meets ``fault``.

    Parameters
    ----------
    submitted
        Tells whether the cluster has the application, for the faults of the reply.
    """

    def __init__(self, port: int, fault: str, submitted: Callable[[], bool]) -> None:
        self._fault, self._submitted = fault, submitted
        self.armed = threading.Event()
        self.broken = 0
        super().__init__(port)

    def forward(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([near, far], [], [], 0.5)
            for source in ready:
                data = source.recv(65536)
                if not data:
                    return
                if self.armed.is_set() and self._breaks(source is near, data, near, far):
                    return
                (far if source is near else near).sendall(data)

    def _breaks(self, request: bool, data: bytes, near: socket.socket, far: socket.socket) -> bool:
        """Do the fault if these bytes meet it; the connection is closed then."""
        if request != self._fault.startswith("request"):
            return False
        self.armed.clear()
        self.broken += 1
        if request and self._fault.endswith("cut"):
            far.sendall(data[: len(data) // 2])
        if not request:
            held = data + self._rest_of_reply(near, far)
            if self._fault.endswith("cut"):
                near.sendall(held[: len(held) // 2])
        return True

    def _rest_of_reply(self, near: socket.socket, far: socket.socket) -> bytes:
        """What the driver says until the cluster has the application; nothing reaches the client.

        The first bytes may be HTTP/2's own, before the request was even read.
        """
        held, deadline = b"", time.monotonic() + 20
        far.setblocking(False)
        near.setblocking(False)
        while not self._submitted() and time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                held += far.recv(65536)
            with contextlib.suppress(BlockingIOError):
                more = near.recv(65536)
                if more:
                    far.sendall(more)
            time.sleep(0.05)
        time.sleep(0.3)
        with contextlib.suppress(BlockingIOError):
            held += far.recv(65536)
        near.setblocking(True)
        return held


def lead_through(directory: Path, port: int) -> int:
    """Let ``driver.json`` name another port; the one that it named before."""
    path = directory / "driver.json"
    told = json.loads(path.read_bytes())
    before, told["port"] = int(told["port"]), port
    path.write_text(json.dumps(told))
    return before


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_submit_gives_one_application(
    yarn_profile: Profile, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    backend, watcher = YarnBackend(yarn_profile), YarnBackend(yarn_profile)
    backend.driver.channel()
    running = backend.driver.running()
    assert running is not None
    submission = make_submission(backend, "import time; time.sleep(600)")
    proxy = BreakingProxy(running.port, fault, lambda: bool(application_ids(watcher, submission)))
    real = DriverChannel.submit
    calls: list[float] = []

    def submit(channel: DriverChannel, spec: Any, timeout: float) -> str:
        # Pings go before a submit on the same connection: only the submit is to meet the fault.
        if not calls:
            proxy.armed.set()
        calls.append(time.monotonic())
        return real(channel, spec, timeout)

    monkeypatch.setattr(DriverChannel, "submit", submit)
    lead_through(backend.driver.directory, proxy.port)
    try:
        handle = backend.submit(submission)
        now = backend.driver.running()
    finally:
        proxy.close()
        lead_through(backend.driver.directory, running.port)
    assert proxy.broken == 1
    # A lost request is sent again; after a lost reply the application is found instead.
    assert len(calls) == (2 if fault.startswith("request") else 1)
    assert application_ids(backend, submission) == [handle["application_id"]]
    assert now is not None
    assert now.pid == running.pid
    backend.stop(handle)
