"""What is known of jobs right now: one call to each backend, details only where they are wanted.

The order of trust: the job's own ``record.json``, its agent, the backend's observation, the shipped
events, the last thing this machine knew. Does not follow jobs (``watch``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Backend, Handle, Observation, Stage
from submarine_jobs.errors import ClusterError, JobNotFoundError, NoRoomError
from submarine_jobs.tracking.closing import close_orphan, close_unsubmitted, shipped_record
from submarine_jobs.tracking.index import IndexEntry, JobStore
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import LOCALIZED, JobRecord, Phase
from submarine_runtime.protocol.states import State, may_follow

#: Seconds in which an agent whose master was killed may still publish the record.
LAST_WORDS = 3.0
#: The same once its port refuses connections: a child process of the agent may still publish.
LAST_WORDS_OF_CHILD = 1.5

#: YARN's words for a master that was ended by SIGKILL alone, see ``backends.yarn.reasons``.
KILLED = "ended with exit code 137"

_FINER = (State.STARTING, State.RESTARTING, State.FINISHING)
_STATE_OF = {
    Stage.WAITING: State.PENDING,
    Stage.STARTING: State.STARTING,
    Stage.RUNNING: State.RUNNING,
}
_NOT_BEGUN = (State.SUBMITTING, State.PENDING, State.STARTING)
#: States before the program runs and after it, as far as this machine knows.
_NEEDS_DIRECTORY = frozenset({State.SUBMITTING, State.PENDING, State.STARTING, State.FINISHING})


@dataclass
class Target:
    """A job to look at: its row in the store, its directory, its backend."""

    entry: IndexEntry
    directory: JobDirectory
    backend: Backend


def observe_all(targets: Iterable[Target]) -> dict[str, Observation]:
    """Ask each backend once about all its jobs that have not ended.

    Raises ClusterError when a backend does not answer.
    """
    by_backend: dict[str, tuple[Backend, dict[str, Mapping[str, object]]]] = {}
    for target in targets:
        if target.entry.final or target.entry.handle is None:
            continue
        _, handles = by_backend.setdefault(target.backend.name, (target.backend, {}))
        handles[target.entry.job_id] = target.entry.handle
    found: dict[str, Observation] = {}
    for backend, handles in by_backend.values():
        found.update(backend.observe(handles))
    return found


def resolve_record(
    target: Target,
    observation: Observation | None,
    store: JobStore,
    *,
    agent_ended: bool = False,
) -> JobRecord:
    """The record that follows from an observation; closes the job when its writer is gone.

    Costs no read of the job directory while the backend says that the job waits, or runs and has
    begun.

    Parameters
    ----------
    agent_ended
        Whether the port of the job refuses connections.
    """
    entry = target.entry
    if entry.final and entry.record is not None:
        return entry.record
    if observation is None and entry.handle is None:
        return _resolve_unaccepted(target, store)
    if observation is None:
        return _active_record(target, None, store)
    if observation.stage in _STATE_OF:
        seen, begun = _refine(target, observation)
        return _active_record(target, seen, store, begun=begun)
    record = target.directory.record()
    if record is None and observation.stage is Stage.ENDED:
        if _may_publish(observation, agent_ended):
            return entry.record or bare_record(entry)  # its agent may still publish the record
        winner = _claiming_application(target)
        if winner is not None:
            store.put(replace(entry, handle=winner))
            return entry.record or bare_record(entry)
        record = close_orphan(target.directory, observation)
    if record is None:
        record = _lost_record(target)
    record.links = {**observation.links, **record.links}
    save_record(store, entry, record)
    return record


def _may_publish(observation: Observation, agent_ended: bool) -> bool:
    """Whether a process of an agent whose master was lost may still publish the record.

    False where the clocks of this machine and of the cluster differ by more than the time for it.
    """
    if observation.reason is not EndReason.MASTER_LOST or observation.finished is None:
        return False
    seconds = LAST_WORDS
    if agent_ended:  # After SIGKILL without a SIGTERM there is no child process either.
        seconds = 0.0 if KILLED in observation.detail else LAST_WORDS_OF_CHILD
    return abs(time.time() - observation.finished) < seconds


def _claiming_application(target: Target) -> Handle | None:
    """The application that runs the job, if the one that was looked at has lost the claim to it.

    A submit whose reply was lost may have made two.
    """
    claim = target.directory.read_json(layout.CLAIM)
    runs = claim.get("application_id") if isinstance(claim, dict) else None
    if not runs or runs == (target.entry.handle or {}).get("application_id"):
        return None
    found = target.backend.find(target.entry.job_id)
    return found if found is not None and found.get("application_id") == runs else None


def _refine(target: Target, observation: Observation) -> tuple[Observation, bool]:
    """What the job's shipped events add to ``RUNNING``; whether they say that it has begun.

    A cluster calls a job running once all containers are granted, while files are still brought to
    them. The job directory is read for such a job only until it has started.
    """
    entry = target.entry
    record, handle = entry.record or bare_record(entry), entry.handle or {}
    several = int(handle.get("containers") or (2 if handle.get("beside") else 1))
    if observation.stage is not Stage.RUNNING or record.state not in _NOT_BEGUN:
        return observation, False
    if several == 1 and _is_early(record):
        return observation, False  # its only container has registered with the cluster
    try:
        shipped = shipped_record(target.directory)
        if shipped.state not in _NOT_BEGUN:
            return observation, True
        if several == 1:
            return observation, False
        starting = shipped.state is State.STARTING
        if several > 2 and not starting:
            return replace(observation, stage=Stage.WAITING), False
        # Localizing ends with the first event of a single agent, or with the coordinator's event.
        localized = starting or not _is_early(record)
        if several > 2:
            localized = any(event.kind == LOCALIZED for event in shipped.events)
        words, since = ("", None) if localized else target.backend.localizing(handle)
        return replace(observation, stage=Stage.STARTING, pending=words, started=since), False
    except (ClusterError, JobNotFoundError, FileNotFoundError, ValueError, KeyError, TypeError):
        return observation, False


def _is_early(record: JobRecord) -> bool:
    """Whether only the backend has reported on the job: it may have begun since."""
    spoken = any(task.container_id or task.host for task in record.tasks)
    return record.state in _NOT_BEGUN and not (spoken and record.state is State.STARTING)


def _active_record(
    target: Target, observation: Observation | None, store: JobStore, *, begun: bool = False
) -> JobRecord:
    entry = target.entry
    record = entry.record or bare_record(entry)
    if observation is not None:
        state = _STATE_OF[observation.stage]
        # The backend sees no finer than RUNNING, and a gang that restarts waits for containers
        # again: keep what the job itself said.
        early = _is_early(record)  # a backend may skip STARTING
        kept = state is not State.PENDING and record.state in _FINER and not early and not begun
        if early and observation.pending and state is State.RUNNING:
            state = State.PENDING  # the master runs, and the gang waits for containers
        past = "" if record.detail == record.pending else record.detail
        if not kept and (early or may_follow(record.state, state)):
            record = replace(record, state=state)
        record = replace(
            record,
            detail=observation.pending or observation.detail or past,
            pending=observation.pending,
            links={**record.links, **observation.links},
            phases=_phases(record, observation),
        )
        if record.state is not entry.state:
            save_record(store, entry, record)
    return record


def _phases(record: JobRecord, observation: Observation) -> list[Phase]:
    """The phases of a job, whose wait in the queue ends when its master is on a node.

    The files of a single task's container localize then; of a distributed job the master starts.
    """
    phases, since, stage = record.phases, observation.started, observation.stage
    gang = int((observation.handle or {}).get("containers") or 1) > 2
    name = "localizing" if stage is Stage.STARTING else "master_start"
    told = stage is Stage.STARTING or (gang and stage is Stage.WAITING)
    if since is None or not told or not _is_early(record):
        return phases
    if any(phase.name == name for phase in phases):
        return phases
    since = max([since, *(phase.start for phase in phases)])
    ended = [phase if phase.end is not None else replace(phase, end=since) for phase in phases]
    return [*ended, Phase(name, since)]


def _resolve_unaccepted(target: Target, store: JobStore) -> JobRecord:
    """A job whose submitter has not said that the cluster took it.

    How long ago the submitter gave a sign is the age of the intent by the file system's clock.
    """
    entry, directory, grace = target.entry, target.directory, target.backend.submit_grace
    record = directory.record()
    so_far = entry.record or bare_record(entry)
    if record is None and time.time() - entry.created < grace / 3:
        return so_far  # the intent is no older than that
    if record is None:
        handle, age = directory.read_json(layout.APPLICATION), directory.age(layout.INTENT)
        if handle is None and age is not None and age < grace / 3:
            return so_far
        handle = handle or target.backend.find(entry.job_id)
        if handle is not None:
            store.put(replace(entry, handle=handle, state=State.PENDING))
            return bare_record(replace(entry, state=State.PENDING))
        if age is not None and age < grace:
            return so_far
        if age is None and directory.storage.stat(directory.path) is None:
            store.remove(entry.job_id)  # a submission that failed leaves no job
            return _removed_record(target)
        record = _removed_record(target) if age is None else _never_submitted(target)
    save_record(store, entry, record)
    return record


def _removed_record(target: Target) -> JobRecord:
    """A job whose directory is gone; not published, and revised should it come back."""
    record = replace(target.entry.record or bare_record(target.entry))
    record.state, record.reason = State.LOST, EndReason.NEVER_SUBMITTED
    record.detail = f"Its job directory {target.directory.url} holds no job any more."
    return record


def _never_submitted(target: Target) -> JobRecord:
    """Close a job that the backend does not know, unless one of its containers has claimed it."""
    observation = Observation(Stage.ENDED, EndReason.NEVER_SUBMITTED)
    try:
        record = close_unsubmitted(target.directory, observation)
    except NoRoomError as full:  # without the claim it may start at any time
        record = replace(target.entry.record or bare_record(target.entry), detail=full.message)
    if record is not None:
        return record
    claim = target.directory.read_json(layout.CLAIM)
    if isinstance(claim, dict) and claim.get("application_id"):
        return _lost_record(target)  # the cluster knows no application of the job any more
    return shipped_record(target.directory)


def _lost_record(target: Target) -> JobRecord:
    """The cluster has forgotten the job and it left no record; may be revised, so not published."""
    record = shipped_record(target.directory)
    record.state, record.reason = State.LOST, EndReason.CLUSTER_LOST
    record.detail = meaning_of(EndReason.CLUSTER_LOST).sentence
    return record


def bare_record(entry: IndexEntry) -> JobRecord:
    """The little that the store knows of a job."""
    application = (entry.handle or {}).get("application_id")
    return JobRecord(
        entry.job_id,
        entry.name,
        entry.state,
        backend=entry.backend,
        job_dir=entry.job_dir,
        created=entry.created,
        application_id=str(application) if application else None,
    )


def save_record(store: JobStore, entry: IndexEntry, record: JobRecord) -> None:
    """Put a newer record into the store."""
    store.put(replace(entry, state=record.state, record=record))


def last_known_record(entry: IndexEntry, error: ClusterError) -> JobRecord:
    """The last thing known, with the sentence that it is not fresh."""
    record = entry.record or bare_record(entry)
    words = f"Last known; the cluster does not answer: {error.message}"
    return replace(record, detail=words, last_known=not record.state.ended)


def record_from_backend(
    entry: IndexEntry, seen: Observation | None, error: ClusterError
) -> JobRecord:
    """What the backend says of a job whose directory cannot be read."""
    if seen is None or seen.stage is not Stage.ENDED or seen.reason is None:
        return last_known_record(entry, error)
    return replace(
        entry.record or bare_record(entry),
        state=meaning_of(seen.reason).state,
        detail=f"The cluster says that it has ended; how is not known: {error.message}",
        finished=seen.finished,
        last_known=True,
    )


def record_without_directory(
    target: Target, seen: Observation | None, store: JobStore, error: ClusterError
) -> JobRecord:
    """What the backend and this machine say of a job whose directory cannot be read."""
    if seen is None or seen.stage not in _STATE_OF:
        return record_from_backend(target.entry, seen, error)
    record = _active_record(target, seen, store)
    words = _waits_for_directory(target, seen, record)
    if words:
        record = replace(record, pending=f"{words}: {error.message}", detail=words)
    return record


def _waits_for_directory(target: Target, seen: Observation, record: JobRecord) -> str:
    """Whether a job waits for the file system of its directory, which does not answer here.

    It needs the directory before its program starts and after the program has ended.
    """
    if not (seen.master_runs or seen.stage is Stage.RUNNING):
        return ""
    waiting = f"waiting for {_storage_name(target)}"
    if target.entry.state in _NEEDS_DIRECTORY:
        return waiting
    if any(task.started is not None for task in record.tasks):
        return ""
    return f"{waiting}, unless its program has started"


def _storage_name(target: Target) -> str:
    scheme = target.directory.url.partition(":")[0]
    return "HDFS" if scheme in ("hdfs", "webhdfs") else "the file system of the job directory"


def record_without_backend(entry: IndexEntry, store: JobStore) -> JobRecord:
    """The same of a job whose cluster nobody here knows how to ask, with its age."""
    record = entry.record or bare_record(entry)
    if record.state.ended:
        return record
    words = (
        f"Last known; its backend {entry.backend} of the profile {entry.profile} is not "
        "configured here now."
    )
    seen = store.updated_at(entry.job_id)
    behind = None if seen is None else max(time.time() - seen, 0.0)
    return replace(record, detail=words, behind=behind, last_known=True)
