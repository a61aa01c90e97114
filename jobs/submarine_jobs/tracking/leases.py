"""Keep jobs with a lease alive for as long as the process that started them is, from one thread.

A sign of life goes to the port of a running job, else to its directory; the job counts
(``submarine_runtime.storage.leases``). Nothing is renewed once this process, or the one that
started it (a kernel's runner), is gone. Ends no job.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.access import AgentAddress, AgentClient
from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_runtime.protocol import layout
from submarine_runtime.storage import pause_of

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

log = logging.getLogger(__name__)

#: Seconds for an answer on a job's port: the other jobs wait meanwhile.
PORT_SECONDS = 2.0


@dataclass
class _Held:
    """A job that is kept alive."""

    job: JobHandle
    every: float
    due: float
    address: AgentAddress | None = None
    signs: int = 0


class Leases:
    """The jobs that this process keeps alive.

    Parameters
    ----------
    alive
        Whether to go on; asked before each round. By default until the process that started this
        one has ended.
    """

    def __init__(self, alive: Callable[[], bool] | None = None) -> None:
        self._alive = alive or _while_parent_lives()
        self._condition = threading.Condition()
        self._held: dict[str, _Held] = {}
        self._thread: threading.Thread | None = None
        self._dark_until = 0.0

    @property
    def held(self) -> list[str]:
        """Ids of the jobs that are kept alive now."""
        with self._condition:
            return list(self._held)

    def renew_while_alive(self, job: JobHandle, seconds: float | None = None) -> None:
        """Renew the lease of ``job`` from now on until it has ended; nothing where it has none.

        Parameters
        ----------
        seconds
            Of a job that is just being submitted: its lease. None: as its spec says, and the first
            sign is given at once.
        """
        first = seconds is None
        seconds = job.directory.spec().lease if first else seconds
        if not seconds:
            return
        every = pause_of(seconds)
        with self._condition:
            due = time.monotonic() + (0.0 if first else every)
            self._held[job.id] = _Held(job, every, due)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()
            self._condition.notify()

    def let_go(self, job_id: str) -> None:
        """Renew it no more; no error where it never was."""
        with self._condition:
            self._held.pop(job_id, None)

    def _run(self) -> None:
        while True:
            with self._condition:
                moments = [held.due for held in self._held.values()]
                pause = min(moments) - time.monotonic() if moments else None
                if pause is None or pause > 0:
                    self._condition.wait(pause)
                    continue
                due = [held for held in self._held.values() if held.due <= time.monotonic()]
            if not self._alive():
                log.warning("leases are renewed no more: whoever started this process is gone")
                return
            self._round(due)

    def _round(self, due: list[_Held]) -> None:
        """Give a sign for each of ``due``; a file system that fails once is not asked again."""
        failed: set[str] = set()
        for held in due:
            prefix = held.job.directory.storage.prefix
            held.due = time.monotonic() + held.every
            try:
                if self._on_port(held):
                    continue
                if prefix in failed or not self._in_directory(held):
                    raise ClusterError("Its job directory cannot be reached.")
            except (SubmarineError, OSError, ValueError, KeyError) as exc:
                log.debug("the lease of %s was not renewed: %s", held.job.id, exc)
                failed.add(prefix)
                held.due = time.monotonic() + held.every / 4
            except Exception:
                log.exception("the lease of %s cannot be renewed", held.job.id)

    def _on_port(self, held: _Held) -> bool:
        """Whether the job has heard us on its port."""
        if held.address is None or time.monotonic() < self._dark_until:
            return False
        try:
            AgentClient(held.address, PORT_SECONDS).renew()
        except SubmarineError as exc:
            if isinstance(exc.__cause__, TimeoutError):
                # Its network cannot be reached from here: do not wait for every job of a round.
                self._dark_until = time.monotonic() + held.every
            return False
        return True

    def _in_directory(self, held: _Held) -> bool:
        """Leave a sign in the job directory, or learn there where the port is, or of the end."""
        directory = held.job.directory
        if directory.storage.stat(directory.file(layout.RECORD)) is not None:
            self.let_go(held.job.id)
            return True
        address = directory.address()
        if address is not None and address != held.address:
            held.address = address
            if self._on_port(held):
                return True
        held.signs += 1
        sign = {"pid": os.getpid(), "number": held.signs, "time": time.time()}
        directory.publish_json(layout.LEASE, sign)
        return True


def _while_parent_lives() -> Callable[[], bool]:
    parent = os.getppid()
    return lambda: os.getppid() == parent


_OF_PROCESS: dict[int, Leases] = {}
_LOCK = threading.Lock()


def leases() -> Leases:
    """The one of this process; a forked process has its own."""
    with _LOCK:
        if os.getpid() not in _OF_PROCESS:
            _OF_PROCESS.clear()
            _OF_PROCESS[os.getpid()] = Leases()
        return _OF_PROCESS[os.getpid()]


def renew_while_alive(job: JobHandle, seconds: float | None = None) -> None:
    """Renew the lease of ``job`` for as long as this process lives; see ``Leases``."""
    leases().renew_while_alive(job, seconds)
