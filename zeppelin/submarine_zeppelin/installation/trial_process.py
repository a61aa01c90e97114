"""A process of the group started as Zeppelin starts it, with no Zeppelin: for checks and figures.

Plays the server: takes the registration, calls a few methods, asks for the end.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from thriftpy2.thrift import TClient, TProcessor

from submarine_jobs.errors import SubmarineError
from submarine_zeppelin.thrift import BoundSocket, ThriftServer, connected, protocol

GROUP = "submarine-rehearsal"
LOOPBACK = "127.0.0.1"


class EventService:
    """The server's side of a rehearsal; a subclass adds the calls of the protocol that it takes."""

    def __init__(self) -> None:
        self.registered = threading.Event()
        self.port = 0

    def registerInterpreterProcess(self, info: Any) -> None:  # noqa: N802  (Zeppelin's name)
        """Note where the process listens."""
        self.port = info.port
        self.registered.set()


@dataclass
class Started:
    """A process that has registered.

    Attributes
    ----------
    seconds
        From its start to its registration.
    client
        Calls its methods.
    """

    pid: int
    seconds: float
    client: Any


@contextmanager
def rehearsal(
    runner: Sequence[str],
    environ: Mapping[str, str] | None = None,
    *,
    timeout: float = 60.0,
    events: EventService | None = None,
) -> Iterator[Started]:
    """Start the command of a runner; it is ended when the block is left.

    Raises
    ------
    SubmarineError
        If it ends, or does not register in time; with the last line that it printed.
    """
    events = EventService() if events is None else events
    bound = BoundSocket(LOOPBACK, range(0))
    server = ThriftServer(TProcessor(protocol.RemoteInterpreterEventService, events), bound)
    server.start()
    words = [*runner, "-d", "/", "-c", LOOPBACK, "-p", str(bound.port), "-r", ":", "-i", GROUP]
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=dict(os.environ if environ is None else environ),
            )
        except OSError as error:
            server.stop()
            raise SubmarineError(f"{runner[0]} cannot be started: {error.strerror}.") from None
        try:
            _await_registration(events, process, said, began + timeout)
            seconds = time.monotonic() - began
            wire = connected(LOOPBACK, events.port, timeout=timeout)
            client = TClient(protocol.RemoteInterpreterService, wire)
            try:
                yield Started(process.pid, seconds, client)
            finally:
                client.close()
        finally:
            _end(process)
            server.stop()


def _await_registration(
    events: EventService, process: subprocess.Popen[bytes], said: Any, until: float
) -> None:
    while not events.registered.wait(0.01):
        ended = process.poll() is not None
        if ended or time.monotonic() > until:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            what = f"ended with code {process.returncode}" if ended else "did not register in time"
            last = f": {lines[-1][:300]}" if lines else ""
            raise SubmarineError(f"A process of the group {what}{last}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
