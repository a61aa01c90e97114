"""Put together what a mouth shows of one job when it asks once; ``watch`` does it continuously."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.errors import ClusterError
from submarine_jobs.observing import Target, bare_record, observe_all, remember, settle, unreachable
from submarine_jobs.shipped_log import ShippedLog
from submarine_jobs.store import Known
from submarine_jobs.tail import TAIL_BYTES, Tail
from submarine_jobs.view import JobView
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.job import Job

#: Nothing is known of a job's start before this; its directory is not asked for an agent.
_NO_AGENT = frozenset({State.SUBMITTING})
#: A job that may have shipped something.
_STARTED = frozenset({State.RUNNING, State.RESTARTING, State.FINISHING})


def known_of(job: Job) -> Known:
    """Row of a job in this machine's index, or one made from its directory."""
    known = job.known()
    if known is None:
        from submarine_jobs.listing import find_job

        find_job(job.session, job.id)
        known = job.known()
    if known is None:
        raise ClusterError(f"The index of jobs has lost {job.id} while it was being read.")
    return known


def view_job(job: Job) -> JobView:
    """Ask agent, directory and cluster, in this order of preference, and show what they say."""
    known = known_of(job)
    if known.final and known.record is not None:
        return JobView(_whole(job, known.record), shipped_tail(job, known.record), source="final")
    if known.state not in _NO_AGENT:
        live = _live_view(job, known)
        if live is not None:
            return live
    target = Target(known, job.directory, job.backend)
    try:
        observation = observe_all([target]).get(job.id)
        record = settle(target, observation, job.session.store)
    except ClusterError as error:
        return _without_backend(job, known, error)
    pending = observation.pending if observation else ""
    if record.state.ended:
        return JobView(record, shipped_tail(job, record), source="final")
    if record.state in _STARTED:
        return shipped_view(job, record, pending)
    return JobView(record, "", pending, "backend")


def _without_backend(job: Job, known: Known, error: ClusterError) -> JobView:
    """The backend does not answer; a job that has ended says so in its own directory."""
    try:
        record = job.directory.record()
    except (ClusterError, ValueError):
        record = None
    if record is None:
        return shipped_view(job, unreachable(known, error))
    remember(job.session.store, known, record)
    return JobView(record, shipped_tail(job, record), source="final")


def _whole(job: Job, stored: JobRecord) -> JobRecord:
    """The final record with its events, which this machine's index leaves out."""
    try:
        found = job.directory.record()
    except (ClusterError, ValueError):
        return stored
    if found is None:
        return stored
    found.links = {**stored.links, **found.links}
    return found


def _live_view(job: Job, known: Known) -> JobView | None:
    try:
        agent = job.agent()
        if agent is None:
            return None
        record = agent.status()
        tail = Tail()
        for stream in ("stdout", "stderr"):
            tail.add(agent.log("worker:0", stream, -TAIL_BYTES, TAIL_BYTES)[0])
    except (ClusterError, FileNotFoundError):
        return None
    if record.job_id != job.id or record.state.ended:
        return None
    merged = merge_live(known.record or bare_record(known), record)
    remember(job.session.store, known, merged)
    return JobView(merged, tail.text(), source="live")


def merge_live(before: JobRecord, live: JobRecord) -> JobRecord:
    """The agent's record, with what only the notebook's side knows (links, application)."""
    live.links = {**before.links, **live.links}
    live.application_id = live.application_id or before.application_id
    names = {phase.name for phase in live.phases}
    live.phases = [phase for phase in before.phases if phase.name not in names] + live.phases
    return live


def shipped_tail(job: Job, record: JobRecord) -> str:
    """The end of both streams as far as they were shipped; empty where nothing can be read.

    Their order of arrival is not known here: what matters stands last, the error of a job that
    failed, the output of one that did not.
    """
    failed = record.state is State.FAILED
    return _shipped(job, ("stdout", "stderr") if failed else ("stderr", "stdout"))[0]


def shipped_view(job: Job, record: JobRecord, pending: str = "") -> JobView:
    """A running job whose agent cannot be reached: the shipped log, and how far it is behind."""
    tail, shipped_at = _shipped(job, ("stderr", "stdout"))
    behind = None if shipped_at is None else max(0.0, time.time() - shipped_at)
    return JobView(replace(record, behind=behind), tail, pending, "shipped")


def _shipped(job: Job, streams: tuple[str, ...]) -> tuple[str, float | None]:
    tail = Tail()
    log = ShippedLog(job.directory)
    try:
        log.refresh()
        for stream in streams:
            if log.length(stream):
                tail.add(log.read(stream, -TAIL_BYTES, TAIL_BYTES))
    except (ClusterError, FileNotFoundError):
        return tail.text(), log.modified
    return tail.text(), log.modified
