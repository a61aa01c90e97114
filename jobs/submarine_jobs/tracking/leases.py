"""Renew the leases of jobs from one thread, as long as the process that started them runs.

A renewal is sent to the port of a running job, or else written to its directory; the job measures
the time (``submarine_runtime.storage.leases``). Renewal stops when this process ends, or the
process that started it (the runner of a kernel).
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
from submarine_runtime.storage import renewal_interval
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

log = logging.getLogger(__name__)

#: Timeout in seconds of a request to a job's port; the other jobs wait meanwhile.
PORT_SECONDS = 2.0


@dataclass
class _LeasedJob:
    """A job whose lease is renewed."""

    job: JobHandle
    every: float
    due: float
    address: AgentAddress | None = None
    signs: int = 0


class Leases:
    """The jobs whose leases this process renews.

    Parameters
    ----------
    alive
        Called before each round; False stops all renewals. By default, True until the parent
        process has ended.
    """

    def __init__(self, alive: Callable[[], bool] | None = None) -> None:
        self._alive = alive or _while_parent_lives()
        self._condition = threading.Condition()
        self._held: dict[str, _LeasedJob] = {}
        self._thread: threading.Thread | None = None
        self._ports_unreachable_until = 0.0

    @property
    def held(self) -> list[str]:
        """Ids of the jobs whose leases are being renewed."""
        with self._condition:
            return list(self._held)

    def renew_while_alive(self, job: JobHandle, seconds: float | None = None) -> None:
        """Renew the lease of ``job``, if it has one, until the job has ended.

        Parameters
        ----------
        seconds
            The lease of a job that is being submitted. None: read it from the spec, and renew it
            immediately.
        """
        first = seconds is None
        seconds = job.directory.spec().lease if first else seconds
        if not seconds:
            return
        every = renewal_interval(seconds)
        with self._condition:
            due = time.monotonic() + (0.0 if first else every)
            self._held[job.id] = _LeasedJob(job, every, due)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()
            self._condition.notify()

    def stop_renewing(self, job_id: str) -> None:
        """Stop renewing the lease of a job, if it is being renewed."""
        with self._condition:
            self._held.pop(job_id, None)

    def _run(self) -> None:
        while True:
            with self._condition:
                due_times = [held.due for held in self._held.values()]
                pause = min(due_times) - time.monotonic() if due_times else None
                if pause is None or pause > 0:
                    self._condition.wait(pause)
                    continue
                due = [held for held in self._held.values() if held.due <= time.monotonic()]
            if not self._alive():
                log.warning("leases are not renewed any more: the parent process has ended")
                return
            self._round(due)

    def _round(self, due: list[_LeasedJob]) -> None:
        """Renew each lease of ``due``; skip a file system that has failed in this round."""
        failed: set[str] = set()
        for held in due:
            prefix = held.job.directory.storage.prefix
            held.due = time.monotonic() + held.every
            try:
                if self._renew_by_port(held):
                    continue
                if prefix in failed or not self._renew_in_directory(held):
                    raise ClusterError(_("Its job directory cannot be reached."))
            except (SubmarineError, OSError, ValueError, KeyError) as exc:
                log.debug("the lease of %s was not renewed: %s", held.job.id, exc)
                failed.add(prefix)
                held.due = time.monotonic() + held.every / 4
            except Exception:
                log.exception("the lease of %s cannot be renewed", held.job.id)

    def _renew_by_port(self, held: _LeasedJob) -> bool:
        """Renew the lease through the port of the job; return whether that succeeded."""
        if held.address is None or time.monotonic() < self._ports_unreachable_until:
            return False
        try:
            AgentClient(held.address, PORT_SECONDS).renew()
        except SubmarineError as exc:
            if isinstance(exc.__cause__, TimeoutError):
                # The network of the job is not reachable: do not wait for a timeout for each job.
                self._ports_unreachable_until = time.monotonic() + held.every
            return False
        return True

    def _renew_in_directory(self, held: _LeasedJob) -> bool:
        """Renew the lease in the job directory, after a look for the end and a new address."""
        directory = held.job.directory
        if directory.storage.stat(directory.file(layout.RECORD)) is not None:
            self.stop_renewing(held.job.id)
            return True
        address = directory.address()
        if address is not None and address != held.address:
            held.address = address
            if self._renew_by_port(held):
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
    """Return the leases of this process; a forked process has its own."""
    with _LOCK:
        if os.getpid() not in _OF_PROCESS:
            _OF_PROCESS.clear()
            _OF_PROCESS[os.getpid()] = Leases()
        return _OF_PROCESS[os.getpid()]


def renew_while_alive(job: JobHandle, seconds: float | None = None) -> None:
    """Renew the lease of ``job`` as long as this process runs; see ``Leases``."""
    leases().renew_while_alive(job, seconds)
