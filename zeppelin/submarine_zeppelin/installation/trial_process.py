"""Start an interpreter process without Zeppelin, for checks, tests and benchmarks.

A minimal event service takes the registration of the process in place of Zeppelin's server.
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
from submarine_runtime.translation import _
from submarine_zeppelin.thrift import BoundSocket, ThriftServer, open_protocol, protocol

GROUP = "submarine-trial"
LOOPBACK = "127.0.0.1"


class EventService:
    """Event service that accepts a registration; subclasses add other calls of the protocol."""

    def __init__(self) -> None:
        self.registered = threading.Event()
        self.port = 0

    def registerInterpreterProcess(self, info: Any) -> None:  # noqa: N802  (name in Zeppelin's protocol)
        """Record the port of the process."""
        self.port = info.port
        self.registered.set()


@dataclass
class TrialProcess:
    """A process that has registered.

    Attributes
    ----------
    seconds
        Time from the start to the registration.
    client
        Thrift client of the process.
    """

    pid: int
    seconds: float
    client: Any


@contextmanager
def start_trial_process(
    runner: Sequence[str],
    environ: Mapping[str, str] | None = None,
    *,
    timeout: float = 60.0,
    events: EventService | None = None,
) -> Iterator[TrialProcess]:
    """Start a process for the duration of the block.

    Raises
    ------
    SubmarineError
        If the process ends or does not register in time; with its last line of output.
    """
    events = EventService() if events is None else events
    bound = BoundSocket(LOOPBACK, range(0))
    server = ThriftServer(TProcessor(protocol.RemoteInterpreterEventService, events), bound)
    server.start()
    words = [*runner, "-d", "/", "-c", LOOPBACK, "-p", str(bound.port), "-r", ":", "-i", GROUP]
    with tempfile.TemporaryFile() as log:
        start = time.monotonic()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ if environ is None else environ),
            )
        except OSError as error:
            server.stop()
            raise SubmarineError(
                _("{runner} cannot be started: {strerror}.").format(
                    runner=runner[0], strerror=error.strerror
                )
            ) from None
        try:
            _await_registration(events, process, log, start + timeout)
            seconds = time.monotonic() - start
            wire = open_protocol(LOOPBACK, events.port, timeout=timeout)
            client = TClient(protocol.RemoteInterpreterService, wire)
            try:
                yield TrialProcess(process.pid, seconds, client)
            finally:
                client.close()
        finally:
            _end(process)
            server.stop()


def _await_registration(
    events: EventService, process: subprocess.Popen[bytes], log: Any, deadline: float
) -> None:
    while not events.registered.wait(0.01):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()
            what = (
                _("ended with code {returncode}").format(returncode=process.returncode)
                if ended
                else _("did not register in time")
            )
            last = f": {lines[-1][:300]}" if lines else ""
            raise SubmarineError(
                _("The interpreter process {what}{last}").format(what=what, last=last)
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
