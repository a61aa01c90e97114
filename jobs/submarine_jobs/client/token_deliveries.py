"""Deliver fresh credentials to the running jobs of a session, from one thread.

A job on a cluster with Kerberos has delegation tokens with a maximum lifetime, and cannot obtain
others. The process of a client has the user's ticket: it sends fresh tokens to the port of the job,
or else writes them to the job directory. The file is deleted at the end of the job.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.access import AgentClient
from submarine_jobs.errors import SubmarineError
from submarine_jobs.tracking import JobQuery
from submarine_runtime.protocol import State, layout

if TYPE_CHECKING:
    from submarine_jobs.backends import Backend
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session

log = logging.getLogger(__name__)

#: Timeout in seconds of a request to a job's port; the other jobs wait meanwhile.
_PORT_SECONDS = 2.0
#: Attempts within one interval after a failure.
_RETRIES = 4
_MAX_JOBS = 500
_UNFINISHED = tuple(state for state in State if not state.ended)


@dataclass
class _Receiver:
    """A job, and the time of the next delivery."""

    due: float
    job: Job | None = None


class TokenDeliveries:
    """The jobs of a session that receive fresh tokens while this process runs.

    Only jobs of this user do.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._condition = threading.Condition()
        self._receivers: dict[str, _Receiver] = {}
        self._closed: set[str] = set()
        self._thread: threading.Thread | None = None

    @property
    def receivers(self) -> list[str]:
        """Ids of the jobs."""
        with self._condition:
            return list(self._receivers)

    def keep(self, job_id: str, created: float, job: Job | None = None) -> None:
        """Deliver tokens to a job until it has ended.

        Parameters
        ----------
        created
            When the job was submitted, in seconds since the epoch: its own tokens were fresh then.
        job
            None: it is looked up for the first delivery.
        """
        interval = self._interval(job)
        if not interval:
            return
        age = max(0.0, time.time() - created)
        with self._condition:
            if job_id in self._receivers or job_id in self._closed:
                return
            due = time.monotonic() + max(0.0, interval - age)
            self._receivers[job_id] = _Receiver(due, job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tokens", daemon=True)
                self._thread.start()
            self._condition.notify()

    def keep_unfinished(self) -> float:
        """Deliver tokens to the unfinished jobs of this user in the index of this machine.

        Returns
        -------
        float
            Seconds until the next call; 0: jobs on this backend need no tokens.
        """
        interval = self._interval(None)
        if interval:
            query = JobQuery(_UNFINISHED, user=self._session.user, limit=_MAX_JOBS)
            backend = self._session.profile.backend
            for row in self._session.store.page(query).rows:
                if row.backend == backend:
                    self.keep(row.job_id, row.created)
        return interval / 2

    def _interval(self, job: Job | None) -> float:
        """Return seconds between two deliveries; keep the user's credentials, which obtain them."""
        try:
            backend = job.backend if job is not None else self._session.backend()
            if interval := backend.token_interval:
                backend.keep_credentials()
            return interval
        except SubmarineError:
            return 0.0

    def _run(self) -> None:
        while True:
            with self._condition:
                times = [receiver.due for receiver in self._receivers.values()]
                pause = min(times) - time.monotonic() if times else None
                if pause is None or pause > 0:
                    self._condition.wait(pause)
                    continue
                now = time.monotonic()
                due = {name: one for name, one in self._receivers.items() if one.due <= now}
            for job_id, receiver in due.items():
                self._deliver_to(job_id, receiver)

    def _deliver_to(self, job_id: str, receiver: _Receiver) -> None:
        interval = self._interval(receiver.job)
        receiver.due = time.monotonic() + interval
        try:
            job = receiver.job = receiver.job or self._session.job(job_id)
            directory = job.directory
            ended = directory.storage.stat(directory.file(layout.RECORD)) is not None
            if ended or not _is_own(job):
                with self._condition:
                    self._closed.add(job_id)
                    self._receivers.pop(job_id, None)
                return
            deliver(job, job.backend)
        except (SubmarineError, OSError, ValueError, KeyError) as exc:
            # The message names servers and files; no token is part of an error.
            log.warning("%s received no fresh tokens: %s", job_id, exc)
            receiver.due = time.monotonic() + interval / _RETRIES
        except Exception:
            log.exception("%s received no fresh tokens", job_id)


def _is_own(job: Job) -> bool:
    """Whether this user owns the job directory, by the file system.

    A job that another user shares has a port and a token of that user, who must not receive tokens
    of this one. The local index may have been filled from such a directory.
    """
    storage = job.directory.storage
    found = storage.stat(job.directory.path)
    return found is not None and found.owner == storage.owner_name(job.backend.user)


def deliver(job: Job, backend: Backend) -> bool:
    """Deliver fresh tokens to a running job; return whether its port accepted them.

    Raises
    ------
    ClusterError
        If there are no tokens, or neither port nor job directory can be reached.
    """
    tokens = backend.fresh_tokens()
    if tokens is None:
        return False
    directory = job.directory
    address = directory.address()
    if address is not None:
        try:
            AgentClient(address, _PORT_SECONDS).send_tokens(tokens.text)
        except SubmarineError as exc:
            log.info("the port of %s does not accept tokens: %s", job.id, exc)
        else:
            return True
    directory.storage.publish(directory.file(layout.TOKENS), tokens.text.encode())
    return False
