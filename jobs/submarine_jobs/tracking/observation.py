"""Determine the current records of jobs from the backends, the job directories and the index.

Sources in order of precedence: ``record.json`` of the job, its agent, the observation of the
backend, the shipped events, the last record in the index. Each backend is called once for all jobs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Backend, Handle, Observation, Stage
from submarine_jobs.errors import ClusterError, JobNotFoundError, NoAccessError, NoRoomError
from submarine_jobs.tracking.closing import close_orphan, close_unsubmitted, shipped_record
from submarine_jobs.tracking.index import IndexEntry, JobStore
from submarine_runtime.protocol import (
    LOCALIZED,
    EndReason,
    JobRecord,
    Phase,
    State,
    layout,
    may_follow,
)
from submarine_runtime.translation import _

#: Seconds in which the agent may still publish the record after its master was killed.
LAST_WORDS = 3.0
#: The same when its port refuses connections: a child process of the agent may still publish.
LAST_WORDS_OF_CHILD = 1.5

#: YARN's message for a master that was killed by SIGKILL; see ``yarn.cluster.diagnostics``.
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
    """A job to observe: its index entry, directory and backend."""

    entry: IndexEntry
    directory: JobDirectory
    backend: Backend


def observe_all(targets: Iterable[Target]) -> dict[str, Observation]:
    """Observe all jobs without a final record, with one call to each backend.

    Raises ClusterError if a backend does not answer.
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
    """Return the record that follows from an observation; close the job if it cannot do so itself.

    The job directory is not read while the job is waiting, or has started and is running.

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
    """Whether a process of the agent may still publish the record after the master was lost.

    False if the clocks of this machine and of the cluster differ by more than that time.
    """
    if observation.reason is not EndReason.MASTER_LOST or observation.finished is None:
        return False
    seconds = LAST_WORDS
    if agent_ended:  # After SIGKILL without SIGTERM there is no child process.
        seconds = 0.0 if KILLED in observation.detail else LAST_WORDS_OF_CHILD
    return abs(time.time() - observation.finished) < seconds


def _claiming_application(target: Target) -> Handle | None:
    """Return the application that holds the claim of the job, if it is not the observed one.

    A submission whose reply was lost may have created two applications.
    """
    claim = target.directory.read_json(layout.CLAIM)
    runs = claim.get("application_id") if isinstance(claim, dict) else None
    if not runs or runs == (target.entry.handle or {}).get("application_id"):
        return None
    found = target.backend.find(target.entry.job_id)
    return found if found is not None and found.get("application_id") == runs else None


def _refine(target: Target, observation: Observation) -> tuple[Observation, bool]:
    """Refine ``RUNNING`` with the shipped events; also return whether the job has started.

    A cluster reports a job as running when all containers are allocated, although their files may
    not be localized yet. The job directory of such a job is read until the job has started.
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
    """Whether only the backend has reported on the job, so that it may have started since."""
    spoken = any(task.container_id or task.host for task in record.tasks)
    return record.state in _NOT_BEGUN and not (spoken and record.state is State.STARTING)


def _active_record(
    target: Target, observation: Observation | None, store: JobStore, *, begun: bool = False
) -> JobRecord:
    entry = target.entry
    record = entry.record or bare_record(entry)
    if observation is not None:
        state = _STATE_OF[observation.stage]
        # The backend does not distinguish states after RUNNING, and a restarting gang waits for
        # containers again: keep the state that the job has reported.
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
    """Return the phases; the wait in the queue ends when the master is on a node.

    The next phase is the localization of a single task, or the start of a distributed job's master.
    """
    phases, since, stage = record.phases, observation.started, observation.stage
    gang = int((observation.handle or {}).get("containers") or 1) > 2
    name = "localizing" if stage is Stage.STARTING else "master_start"
    known = stage is Stage.STARTING or (gang and stage is Stage.WAITING)
    if since is None or not known or not _is_early(record):
        return phases
    if any(phase.name == name for phase in phases):
        return phases
    since = max([since, *(phase.start for phase in phases)])
    ended = [phase if phase.end is not None else replace(phase, end=since) for phase in phases]
    return [*ended, Phase(name, since)]


def _resolve_unaccepted(target: Target, store: JobStore) -> JobRecord:
    """Return the record of a job whose acceptance by the cluster is not recorded.

    The age of the intent, by the clock of the file system, tells whether the client is running.
    """
    entry, directory, grace = target.entry, target.directory, target.backend.submit_grace
    record = directory.record()
    so_far = entry.record or bare_record(entry)
    if record is None and time.time() - entry.created < grace / 3:
        return so_far  # the intent is not older
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
            store.remove(entry.job_id)  # a failed submission leaves no job
            return _removed_record(target)
        record = _removed_record(target) if age is None else _never_submitted(target)
    save_record(store, entry, record)
    return record


def _removed_record(target: Target) -> JobRecord:
    """Return the record of a job whose directory does not exist; it is not published."""
    record = replace(target.entry.record or bare_record(target.entry))
    record.state, record.reason = State.LOST, EndReason.NEVER_SUBMITTED
    record.detail = _("Its job directory {url} no longer contains a job.").format(
        url=target.directory.url
    )
    return record


def _never_submitted(target: Target) -> JobRecord:
    """Close a job that is unknown to the backend, unless a container has claimed it."""
    observation = Observation(Stage.ENDED, EndReason.NEVER_SUBMITTED)
    try:
        record = close_unsubmitted(target.directory, observation)
    except NoAccessError:  # a job of another user, whose client closes it
        record = replace(target.entry.record or bare_record(target.entry))
    except NoRoomError as full:  # the job may still start, because the claim was not taken
        record = replace(target.entry.record or bare_record(target.entry), detail=full.message)
    if record is not None:
        return record
    claim = target.directory.read_json(layout.CLAIM)
    if isinstance(claim, dict) and claim.get("application_id"):
        return _lost_record(target)  # the cluster has no application of the job any more
    return shipped_record(target.directory)


def _lost_record(target: Target) -> JobRecord:
    """Return the record of a job without a record that is unknown to the cluster; not published."""
    record = shipped_record(target.directory)
    record.state, record.reason = State.LOST, EndReason.CLUSTER_LOST
    record.detail = EndReason.CLUSTER_LOST.meaning.sentence
    return record


def bare_record(entry: IndexEntry) -> JobRecord:
    """Return a record with the fields of the index entry."""
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
    """Store a newer record in the index."""
    store.put(replace(entry, state=record.state, record=record))


def last_known_record(entry: IndexEntry, error: ClusterError) -> JobRecord:
    """Return the last known record, marked as not current."""
    record = entry.record or bare_record(entry)
    words = _("Last known; the cluster does not answer: {error}").format(error=error.message)
    return replace(record, detail=words, last_known=not record.state.ended)


def record_from_backend(
    entry: IndexEntry, seen: Observation | None, error: ClusterError
) -> JobRecord:
    """Return the record of a job whose directory cannot be read, from its observation."""
    if seen is None or seen.stage is not Stage.ENDED or seen.reason is None:
        return last_known_record(entry, error)
    return replace(
        entry.record or bare_record(entry),
        state=seen.reason.meaning.state,
        detail=_("The cluster says that it has ended; how is not known: {error}").format(
            error=error.message
        ),
        finished=seen.finished,
        last_known=True,
    )


def record_without_directory(
    target: Target, seen: Observation | None, store: JobStore, error: ClusterError
) -> JobRecord:
    """Return the record of a job whose directory cannot be read, from observation and index."""
    if seen is None or seen.stage not in _STATE_OF:
        return record_from_backend(target.entry, seen, error)
    record = _active_record(target, seen, store)
    words = _directory_wait(target, seen, record)
    if words:
        record = replace(record, pending=f"{words}: {error.message}", detail=words)
    return record


def _directory_wait(target: Target, seen: Observation, record: JobRecord) -> str:
    """Describe whether a job probably waits for the file system of its directory; or return "".

    A job needs the directory before its program starts and after the program has ended.
    """
    if not (seen.master_runs or seen.stage is Stage.RUNNING):
        return ""
    waiting = _("waiting for {storage}").format(storage=_storage_name(target))
    if target.entry.state in _NEEDS_DIRECTORY:
        return waiting
    if any(task.started is not None for task in record.tasks):
        return ""
    return _("{waiting}, unless its program has started").format(waiting=waiting)


def _storage_name(target: Target) -> str:
    scheme = target.directory.url.partition(":")[0]
    return "HDFS" if scheme in ("hdfs", "webhdfs") else _("the file system of the job directory")


def record_without_backend(entry: IndexEntry, store: JobStore) -> JobRecord:
    """Return the last known record of a job whose backend is not configured, with its age."""
    record = entry.record or bare_record(entry)
    if record.state.ended:
        return record
    words = _(
        "Last known; its backend {backend} of the profile {profile} is not configured here now."
    ).format(backend=entry.backend, profile=entry.profile)
    seen = store.updated_at(entry.job_id)
    behind = None if seen is None else max(time.time() - seen, 0.0)
    return replace(record, detail=words, behind=behind, last_known=True)
