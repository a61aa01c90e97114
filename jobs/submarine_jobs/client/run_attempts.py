"""Attach a repeated headless run to the jobs of its earlier attempts.

Each start of a job in a run with a run id is registered in
``<job root>/runs/<run>/<start>.<n>.json``, which names the job. The file is published by exclusive
create before the job can run. So if two attempts run at the same time, one starts the job and the
other joins it. A job that failed, was cancelled or was lost is replaced under the next number.
Records of runs without existing jobs are removed, a few of the oldest once per process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.job_ownership import foreign_owner
from submarine_jobs.errors import ClusterError, JobNotFoundError, RefusedError, StorageError
from submarine_jobs.storage import Storage
from submarine_jobs.submit import StartTakenError
from submarine_jobs.text import one_line
from submarine_jobs.tracking import renew_while_alive
from submarine_runtime.protocol import State, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session
    from submarine_jobs.model import JobSpec
    from submarine_jobs.storage import Storage

#: Seconds in which another attempt must submit the job whose start it has registered.
SUBMIT_SECONDS = 60.0
#: Seconds in which a job that is being submitted or cancelled must reach another state.
SETTLE_SECONDS = 300.0
_PAUSE = 1.0
_UNSUCCESSFUL = (State.FAILED, State.CANCELLED, State.LOST)
_ordinals: dict[str, int] = {}
_lock = threading.Lock()


class Registration(NamedTuple):
    """A registered job, and the content of the request; the number is 0 if there is none."""

    number: int = 0
    job_id: str = ""
    content: str = ""


@dataclass(frozen=True)
class RunStart:
    """The registration of one start of a job in a run.

    Parameters
    ----------
    content
        Digest of what the start consists of, where its key does not include it.
    """

    storage: Storage
    root: str
    run_id: str
    start: str
    content: str = ""

    @property
    def directory(self) -> str:
        """Directory of all starts of the run; its name is a digest of the run id."""
        return f"{self.root.rstrip('/')}/{layout.RUNS}/{_digest(self.run_id)}"

    def newest(self) -> Registration:
        """Return the newest registration."""
        try:
            entries = self.storage.list_directory(self.directory)
        except FileNotFoundError:
            return Registration()
        numbers = [0]
        for entry in entries:
            start, _, rest = entry.name.partition(".")
            text = rest.removesuffix(".json")
            if start == self.start and text.isascii() and text.isdecimal():
                numbers.append(int(text))
        number = max(numbers)
        if not number:
            return Registration()
        raw = JobDirectory(self.storage, self.directory).read_json(f"{self.start}.{number}.json")
        if not isinstance(raw, dict):
            return Registration(number)
        return Registration(number, str(raw.get("job_id", "")), str(raw.get("content", "")))

    def register(self, number: int, job_id: str) -> bool:
        """Register the job; return False if another attempt was first."""
        content = {"version": 1, "run_id": self.run_id, "job_id": job_id, "time": time.time()}
        if self.content:
            content["content"] = self.content
        path = f"{self.directory}/{self.start}.{number}.json"
        return self.storage.publish_exclusive(path, json.dumps(content).encode())


def start_or_join(
    session: Session,
    spec: JobSpec,
    place: str,
    submit: Callable[[Callable[[str], bool] | None], Job],
    say: Callable[[str], None],
) -> tuple[Job, bool]:
    """Start a job, or join the job that an earlier attempt of the same run has started.

    Return the job, and whether it was joined.

    Parameters
    ----------
    place
        Distinguishes this start from others of the same program: cell id or number.
    submit
        Submits the job; its parameter is called with the new job id before the job can run.
    say
        Called with one line about a joined or awaited job.
    """
    if not spec.run_id:
        return submit(None), False
    storage, root = session.backend(spec.backend).job_root()
    where = RunStart(storage, root, spec.run_id, _start(spec, place))
    job, joined = started_once(
        where, lambda newest: _joinable_job(session, where, newest.job_id, say), submit
    )
    if joined:
        say(
            _("{job} of an earlier attempt of this run is joined; nothing new was started.").format(
                job=job.id
            )
        )
        session.store.put_launch(job.id, session.notebook)
        started.job_started(job)
        if spec.lease and not job.record().state.ended:
            renew_while_alive(job)
    return job, joined


def started_once(
    start: RunStart,
    known: Callable[[Registration], Job | None],
    submit: Callable[[Callable[[str], bool]], Job],
) -> tuple[Job, bool]:
    """Return the registered job of a start, or submit and register one; and whether it was known.

    Parameters
    ----------
    known
        Returns the job of the newest registration; None if another one is necessary.
    submit
        Submits the job; its parameter is called with the new job id before the job can run.
    """
    while True:
        newest = start.newest()
        job = known(newest) if newest.number else None
        if job is not None:
            return job, True
        remove_stale_runs(start.storage, start.root)
        try:
            return submit(partial(start.register, newest.number + 1)), False
        except StartTakenError:
            continue


def _start(spec: JobSpec, place: str) -> str:
    """Return the key of a start: digest of place, program, and number of equal earlier starts."""
    what = {
        "place": place,
        "bundle": spec.bundle_digest,
        "name": spec.name,
        "program": spec.program,
        "args": spec.args,
        "params": dict(spec.params),
        "commands": {role.name: role.command for role in spec.roles},
    }
    text = json.dumps(what, sort_keys=True, default=str)
    key = f"{spec.run_id}\n{text}"
    with _lock:
        ordinal = _ordinals[key] = _ordinals.get(key, -1) + 1
    return _digest(f"{text}\n{ordinal}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _joinable_job(
    session: Session, where: RunStart, job_id: str, say: Callable[[str], None]
) -> Job | None:
    """Return the registered job if it is active or has succeeded; None to start another."""
    if not layout.is_job_id(job_id):
        return None
    directory = JobDirectory(where.storage, layout.job_directory(where.root, job_id))
    if not _was_submitted(directory, say):
        return None
    began = time.monotonic()
    while True:
        try:
            job = session.job(job_id)
        except JobNotFoundError:
            return None
        if owner := foreign_owner(job):
            raise RefusedError(
                _(
                    "{job}, which another attempt of this run has started, is a job of {owner}: "
                    "its results are not used."
                ).format(job=job_id, owner=one_line(owner, 80)),
                _("Give this run another --run-id."),
            )
        state = job.record().state
        if state is State.SUCCEEDED:
            return job
        if state in _UNSUCCESSFUL:
            return None
        ending = where.storage.stat(directory.file(layout.CANCEL)) is not None
        if state is not State.SUBMITTING and not ending:
            return job
        deadline = began + SETTLE_SECONDS
        if not ending:  # after the grace period, the client of the submission has ended
            deadline = began + max(SETTLE_SECONDS, job.backend.submit_grace + SUBMIT_SECONDS)
        if time.monotonic() > deadline:
            raise ClusterError(
                (
                    _(
                        "{job} of an earlier attempt of this run is still {state} although it was "
                        "cancelled."
                    )
                    if ending
                    else _("{job} of an earlier attempt of this run is still {state}.")
                ).format(
                    job=job_id,
                    state=state.value,
                ),
                _("Nothing was started; `submarine cancel {job}` ends it.").format(job=job_id),
            )
        say(
            _("{job} of an earlier attempt is {state}; waiting for the next state.").format(
                job=job_id, state=state.value
            )
        )
        time.sleep(_PAUSE)
        _wait_for_record(directory, deadline)


def _wait_for_record(directory: JobDirectory, deadline: float) -> None:
    """Wait until the job has a record, at most ten seconds."""
    until = min(deadline, time.monotonic() + 10 * _PAUSE)
    while time.monotonic() < until:
        if directory.storage.stat(directory.file(layout.RECORD)) is not None:
            return
        time.sleep(_PAUSE)


def _was_submitted(directory: JobDirectory, say: Callable[[str], None]) -> bool:
    """Whether the attempt that registered the job has published its intent."""
    deadline = time.monotonic() + SUBMIT_SECONDS
    reported = False
    while directory.storage.stat(directory.path) is not None:
        # A job that the backend has refused has a record and no intent.
        for name in (layout.INTENT, layout.RECORD):
            if directory.storage.stat(directory.file(name)) is not None:
                return True
        if time.monotonic() > deadline:
            # The other attempt has ended or is suspended: prevent the start of its program.
            request = {
                "by": "another attempt",
                "why": "it was not submitted in time",
                "time": time.time(),
            }
            directory.publish_json_exclusive(layout.CANCEL, request)
            return False
        if not reported:
            say(_("Another attempt of this run is just starting this job; waiting for it."))
            reported = True
        time.sleep(_PAUSE)
    return False


#: Minimum age in seconds of a run that is removed.
MIN_AGE = 7 * 86400.0
#: Maximum number of runs to check, and of starts in one run.
MAX_RUNS, MAX_STARTS = 20, 200
#: Maximum size of a registration in bytes.
MAX_START = 1 << 16
_cleaned: set[str] = set()


def remove_stale_runs(storage: Storage, root: str, now: float | None = None) -> None:
    """Delete the oldest runs below ``root`` without existing jobs; ignore storage errors."""
    runs = f"{root.rstrip('/')}/{layout.RUNS}"
    if storage.url(runs) in _cleaned:
        return
    _cleaned.add(storage.url(runs))
    before = (time.time() if now is None else now) - MIN_AGE
    with contextlib.suppress(StorageError, FileNotFoundError):
        old = [entry for entry in storage.list_directory(runs) if entry.modified < before]
        for entry in sorted(old, key=lambda found: found.modified)[:MAX_RUNS]:
            if not _has_job(storage, root, f"{runs}/{entry.name}"):
                storage.delete(f"{runs}/{entry.name}", recursive=True)


def _has_job(storage: Storage, root: str, run: str) -> bool:
    starts = storage.list_directory(run)
    if len(starts) > MAX_STARTS:
        return True
    for start in starts:
        try:
            job_id = str(json.loads(storage.read(f"{run}/{start.name}", 0, MAX_START))["job_id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        directory = layout.job_directory(root, job_id) if layout.is_job_id(job_id) else ""
        if directory and storage.stat(directory) is not None:
            return True
    return False
