"""A second attempt of a headless run finds the jobs of the first, instead of starting them twice.

Each start of a run with a run id has a place, ``<job root>/runs/<run>/<start>.<n>.json``, that says
which job it is. The place is taken by exclusive create just before a job could run, so that of two
attempts at the same time one starts it and the other joins. Only one that failed, was cancelled or
got lost gives way to the next number. Does not submit (``submit``) and does not wait for an end.
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
from typing import TYPE_CHECKING

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.job_ownership import foreign_owner
from submarine_jobs.errors import ClusterError, JobNotFoundError, RefusedError, StorageError
from submarine_jobs.storage import Storage
from submarine_jobs.submit import StartTakenError
from submarine_jobs.text import one_line
from submarine_jobs.tracking import renew_while_alive
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session
    from submarine_jobs.model import JobSpec
    from submarine_jobs.storage import Storage

#: Seconds for another attempt to hand over the job whose place it has just taken.
SUBMIT_SECONDS = 60.0
#: Seconds until a job is looked at as settled that the cluster may not have heard of, or that was
#: told to end.
SETTLE_SECONDS = 300.0
_PAUSE = 1.0
_UNSUCCESSFUL = (State.FAILED, State.CANCELLED, State.LOST)
_ordinals: dict[str, int] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class RunStart:
    """Where it is written which job one start of a run is."""

    storage: Storage
    root: str
    run_id: str
    start: str

    @property
    def directory(self) -> str:
        """Of all starts of the run; nothing in it is a name from outside."""
        return f"{self.root.rstrip('/')}/{layout.RUNS}/{_digest(self.run_id)}"

    def newest(self) -> tuple[int, str]:
        """Number and job of the last one that took the place; 0 where nobody has."""
        try:
            entries = self.storage.list_directory(self.directory)
        except FileNotFoundError:
            return 0, ""
        numbers = [0]
        for entry in entries:
            start, _, rest = entry.name.partition(".")
            text = rest.removesuffix(".json")
            if start == self.start and text.isascii() and text.isdecimal():
                numbers.append(int(text))
        number = max(numbers)
        if not number:
            return 0, ""
        raw = JobDirectory(self.storage, self.directory).read_json(f"{self.start}.{number}.json")
        return number, str(raw.get("job_id", "")) if isinstance(raw, dict) else ""

    def take(self, number: int, job_id: str) -> bool:
        """Write that the job is it; False where another attempt was first."""
        content = {"version": 1, "run_id": self.run_id, "job_id": job_id, "time": time.time()}
        path = f"{self.directory}/{self.start}.{number}.json"
        return self.storage.publish_exclusive(path, json.dumps(content).encode())


def start_or_join(
    session: Session,
    spec: JobSpec,
    place: str,
    submit: Callable[[Callable[[str], bool] | None], Job],
    say: Callable[[str], None],
) -> tuple[Job, bool]:
    """Start a job, or join the one that an earlier attempt of the same run has started.

    Gives the job, and whether it was joined.

    Parameters
    ----------
    place
        What tells this start from others of the same program: the id of its cell, or its number.
    submit
        Submits; gets what is asked with the new job's id before it could run.
    say
        Told in a line what is joined, or waited for.
    """
    if not spec.run_id:
        return submit(None), False
    storage, root = session.backend(spec.backend).job_root()
    where = RunStart(storage, root, spec.run_id, _start(spec, place))
    while True:
        number, job_id = where.newest()
        job = _joinable_job(session, where, job_id, say) if number else None
        if job is not None:
            say(f"{job.id} of an earlier attempt of this run is joined; nothing new was started.")
            session.store.put_launch(job.id, session.notebook)
            started.job_started(job)
            if spec.lease and not job.record().state.ended:
                renew_while_alive(job)
            return job, True
        remove_stale_runs(storage, root)
        try:
            return submit(partial(where.take, number + 1)), False
        except StartTakenError:
            continue


def _start(spec: JobSpec, place: str) -> str:
    """Which start of the run it is: its place, its program, and how many of that went before."""
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
    """The job of a place if it goes on or has succeeded; None where another is to be started."""
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
                f"{job_id}, which another attempt of this run has started, is a job of "
                f"{one_line(owner, 80)}: its results are not taken for yours.",
                "Give this run another --run-id.",
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
        if not ending:  # only after the grace is it known that a submitter has died
            deadline = began + max(SETTLE_SECONDS, job.backend.submit_grace + SUBMIT_SECONDS)
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{job_id} of an earlier attempt of this run is still {state.value}"
                f"{' though it was told to end' if ending else ''}.",
                f"Nothing was started; `submarine cancel {job_id}` ends it.",
            )
        say(f"{job_id} of an earlier attempt is {state.value}; waiting until that is settled.")
        time.sleep(_PAUSE)
        _pause(directory, deadline)


def _pause(directory: JobDirectory, deadline: float) -> None:
    """Until the job has a record, or for a while."""
    until = min(deadline, time.monotonic() + 10 * _PAUSE)
    while time.monotonic() < until:
        if directory.storage.stat(directory.file(layout.RECORD)) is not None:
            return
        time.sleep(_PAUSE)


def _was_submitted(directory: JobDirectory, say: Callable[[str], None]) -> bool:
    """Whether the attempt that took the place came as far as the job's intent."""
    deadline = time.monotonic() + SUBMIT_SECONDS
    told = False
    while directory.storage.stat(directory.path) is not None:
        # A job that the backend refused has a record and no intent.
        for name in (layout.INTENT, layout.RECORD):
            if directory.storage.stat(directory.file(name)) is not None:
                return True
        if time.monotonic() > deadline:
            # Whoever took it died, or sleeps; then this keeps its program from ever starting.
            wish = {"by": "another attempt", "why": "it was never handed over", "time": time.time()}
            directory.publish_json_exclusive(layout.CANCEL, wish)
            return False
        if not told:
            say("Another attempt of this run is just starting this job; waiting for it.")
            told = True
        time.sleep(_PAUSE)
    return False


#: Seconds that a run is left alone after its last start.
MIN_AGE = 7 * 86400.0
#: Runs that are looked at, and starts of one run.
MAX_RUNS, MAX_STARTS = 20, 200
#: Bytes of the description of one start.
MAX_START = 1 << 16
_cleaned: set[str] = set()


def remove_stale_runs(storage: Storage, root: str, now: float | None = None) -> None:
    """Delete the oldest runs below ``root`` that have no job any more; fails in silence."""
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
