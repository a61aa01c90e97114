"""What is known of jobs right now: one call to each backend, details only where they are wanted.

The order of trust: the job's own ``record.json``, its agent, the backend's observation, the shipped
events, the last thing this machine knew. Does not follow jobs (``watch``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from submarine_jobs.backends.base import Backend, Handle, Observation, Stage
from submarine_jobs.closing import close_orphan, shipped_record
from submarine_jobs.directory import JobDirectory
from submarine_jobs.errors import ClusterError
from submarine_jobs.store import JobStore, Known
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State, may_follow

#: Seconds after which a job whose submitter never reported an acceptance is looked for by tag.
SUBMIT_GRACE = 60.0
#: Seconds after which such a job that the cluster does not know counts as never submitted.
NEVER_SUBMITTED_AFTER = 180.0

_FINER = (State.STARTING, State.RESTARTING, State.FINISHING)
_STATE_OF = {Stage.WAITING: State.PENDING, Stage.RUNNING: State.RUNNING}


@dataclass
class Target:
    """A job to look at: its row in the store, its directory, its backend."""

    known: Known
    directory: JobDirectory
    backend: Backend


def observe_all(targets: Iterable[Target]) -> dict[str, Observation]:
    """Ask each backend once about all its jobs that have not ended.

    Raises ClusterError when a backend does not answer.
    """
    by_backend: dict[str, tuple[Backend, dict[str, Mapping[str, object]]]] = {}
    for target in targets:
        if target.known.final or target.known.handle is None:
            continue
        _, handles = by_backend.setdefault(target.backend.name, (target.backend, {}))
        handles[target.known.job_id] = target.known.handle
    found: dict[str, Observation] = {}
    for backend, handles in by_backend.values():
        found.update(backend.observe(handles))
    return found


def settle(target: Target, observation: Observation | None, store: JobStore) -> JobRecord:
    """The record that follows from an observation; closes the job when its writer is gone.

    Costs no read of the job directory while the backend says that the job waits or runs.
    """
    known = target.known
    if known.final and known.record is not None:
        return known.record
    if observation is None and known.handle is None:
        return _settle_unaccepted(target, store)
    if observation is None or observation.stage in _STATE_OF:
        return _still_going(target, observation, store)
    record = target.directory.record()
    if record is None and observation.stage is Stage.ENDED:
        winner = _winner(target)
        if winner is not None:
            store.put(replace(known, handle=winner))
            return known.record or bare_record(known)
        record = close_orphan(target.directory, observation)
    if record is None:
        record = _lost(target)
    record.links = {**observation.links, **record.links}
    remember(store, known, record)
    return record


def _winner(target: Target) -> Handle | None:
    """The application that runs the job, if the one that was looked at has lost the claim to it.

    A submit whose reply was lost may have made two.
    """
    claim = target.directory.read_json(layout.CLAIM)
    runs = claim.get("application_id") if isinstance(claim, dict) else None
    if not runs or runs == (target.known.handle or {}).get("application_id"):
        return None
    found = target.backend.find(target.known.job_id)
    return found if found is not None and found.get("application_id") == runs else None


def _still_going(target: Target, observation: Observation | None, store: JobStore) -> JobRecord:
    known = target.known
    record = known.record or bare_record(known)
    if observation is not None:
        state = _STATE_OF[observation.stage]
        # The backend sees no finer than RUNNING, and a gang that restarts waits for containers
        # again: keep what the job itself said.
        kept = state is State.RUNNING and record.state in _FINER
        early = record.state in (State.SUBMITTING, State.PENDING)  # a backend skips STARTING
        if early and observation.pending:
            state = State.PENDING  # the master runs, and the gang waits for containers
        if not kept and (early or may_follow(record.state, state)):
            record = replace(record, state=state)
        record = replace(
            record,
            detail=observation.pending or observation.detail or record.detail,
            pending=observation.pending,
            links={**record.links, **observation.links},
        )
        if record.state is not known.state:
            remember(store, known, record)
    return record


def _settle_unaccepted(target: Target, store: JobStore) -> JobRecord:
    """A job whose submitter has not said that the cluster took it."""
    record = target.directory.record()
    if record is None and time.time() - target.known.created < SUBMIT_GRACE:
        return bare_record(target.known)
    if record is None:
        handle = target.directory.read_json(layout.APPLICATION)
        handle = handle or target.backend.find(target.known.job_id)
        if handle is not None:
            store.put(replace(target.known, handle=handle, state=State.PENDING))
            return bare_record(replace(target.known, state=State.PENDING))
        if time.time() - target.known.created < NEVER_SUBMITTED_AFTER:
            return bare_record(target.known)
        observation = Observation(Stage.ENDED, EndReason.NEVER_SUBMITTED)
        record = close_orphan(target.directory, observation)
    remember(store, target.known, record)
    return record


def _lost(target: Target) -> JobRecord:
    """The cluster has forgotten the job and it left no record; may be revised, so not published."""
    record = shipped_record(target.directory)
    record.state, record.reason = State.LOST, EndReason.CLUSTER_LOST
    record.detail = meaning_of(EndReason.CLUSTER_LOST).sentence
    return record


def bare_record(known: Known) -> JobRecord:
    """The little that the store knows of a job."""
    application = (known.handle or {}).get("application_id")
    return JobRecord(
        known.job_id,
        known.name,
        known.state,
        backend=known.backend,
        job_dir=known.job_dir,
        created=known.created,
        application_id=str(application) if application else None,
    )


def remember(store: JobStore, known: Known, record: JobRecord) -> None:
    """Put a newer record into the store."""
    store.put(replace(known, state=record.state, record=record))


def unreachable(known: Known, error: ClusterError) -> JobRecord:
    """The last thing known, with the sentence that it is not fresh."""
    record = known.record or bare_record(known)
    words = f"Last known; the cluster does not answer: {error.message}"
    return replace(record, detail=words, last_known=not record.state.ended)


def unread(known: Known, seen: Observation | None, error: ClusterError) -> JobRecord:
    """What the backend says of a job whose directory cannot be read."""
    if seen is None or seen.stage is not Stage.ENDED or seen.reason is None:
        return unreachable(known, error)
    return replace(
        known.record or bare_record(known),
        state=meaning_of(seen.reason).state,
        detail=f"The cluster says that it has ended; how is not known: {error.message}",
        finished=seen.finished,
        last_known=True,
    )


def unasked(known: Known, store: JobStore) -> JobRecord:
    """The same of a job whose cluster nobody here knows how to ask, with its age."""
    record = known.record or bare_record(known)
    if record.state.ended:
        return record
    words = (
        f"Last known; its backend {known.backend} of the profile {known.profile} is not "
        "configured here now."
    )
    seen = store.seen(known.job_id)
    behind = None if seen is None else max(time.time() - seen, 0.0)
    return replace(record, detail=words, behind=behind, last_known=True)
