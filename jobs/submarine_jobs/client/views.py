"""Build the view of one job for a single request; ``watcher`` builds views continuously."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import NotListeningError
from submarine_jobs.client.job_ownership import noted_owner
from submarine_jobs.concurrency import call_timeout
from submarine_jobs.errors import ClusterError, StorageError
from submarine_jobs.logs import TAIL_BYTES, ShippedLog, Tail
from submarine_jobs.model import ONLY_TASK, JobView, chief_of_record, find_task, most_relevant_task
from submarine_jobs.tracking import (
    IndexEntry,
    Target,
    bare_record,
    last_known_record,
    observe_all,
    record_without_directory,
    resolve_record,
    save_record,
    with_owner,
)
from submarine_runtime.protocol import JobRecord, State
from submarine_runtime.protocol.layout import HELPER_STREAM, PROGRAM_STREAMS, STREAMS, attempt_name
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import AgentClient
    from submarine_jobs.client.job import Job

#: Streams of a failed and of any other job, the more important ones last.
FAILED_ORDER = (HELPER_STREAM, "stdout", "stderr")
SHOWN_ORDER = ("stderr", HELPER_STREAM, "stdout")
#: Timeout in seconds of calls to the job directory while a view is built.
STORAGE_SECONDS = 3.0
#: States in which a job cannot have an agent yet.
_NO_AGENT = frozenset({State.SUBMITTING})
#: States in which a job may have shipped logs.
_STARTED = frozenset({State.RUNNING, State.RESTARTING, State.FINISHING})


def index_entry_of(job: Job) -> IndexEntry:
    """Return the index entry of a job; import the job from its directory if necessary."""
    entry = job.index_entry()
    if entry is None:
        job.session.job(job.id)
        entry = job.index_entry()
    if entry is None:
        raise ClusterError(_("The index has no entry of {job} any more.").format(job=job.id))
    return entry


def view_job(job: Job) -> JobView:
    """Return the view of a job from its agent, its directory or the cluster, in this order.

    A file system that does not answer delays the view by ``STORAGE_SECONDS``. The view then comes
    from the cluster and the index, and has a note.
    """
    entry = index_entry_of(job)
    with call_timeout(STORAGE_SECONDS):
        if entry.final and entry.record is not None:
            view = final_view(job, _complete_record(job, entry.record))
        else:
            view = _view(job, entry)
    return replace(view, record=with_owner(view.record, noted_owner(job)))


def _view(job: Job, entry: IndexEntry) -> JobView:
    silent: StorageError | None = None
    agent_ended = False
    if entry.state not in _NO_AGENT:
        try:
            live = _live_view(job, entry)
        except NotListeningError:
            live, agent_ended = None, True
        except StorageError as error:
            live, silent = None, error
        if live is not None:
            return live
    target, observation = Target(entry, job.directory, job.backend), None
    try:
        observation = observe_all([target]).get(job.id)
        if silent is None:
            record = resolve_record(target, observation, job.session.store, agent_ended=agent_ended)
    except StorageError as error:
        silent = error
    except ClusterError as error:
        return _view_without_backend(job, entry, error)
    if silent is not None:
        record = record_without_directory(target, observation, job.session.store, silent)
        record = pending_until_started(job, record)
        return JobView(_with_note(record, silent), "", record.pending, "backend")
    pending = observation.pending if observation else ""
    if record.state.ended:
        return final_view(job, record)
    record = pending_until_started(job, record)
    if record.state in _STARTED:
        return shipped_view(job, record, pending)
    return JobView(record, "", pending or record.pending, "backend")


def _with_note(record: JobRecord, error: ClusterError) -> JobRecord:
    """Return the record with a note that the job directory could not be read."""
    words = _("The job directory cannot be read now: {error}").format(error=error.message)
    return replace(record, missing=[words, *record.missing])


def first_record(job: Job) -> JobRecord:
    """Return the last record of a job in the index."""
    entry = index_entry_of(job)
    return pending_until_started(job, entry.record or bare_record(entry))


def pending_until_started(job: Job, record: JobRecord) -> JobRecord:
    """Show a running distributed job as pending until a task has started.

    The cluster reports it as running when only its master runs. The record is not changed if the
    job directory does not answer.
    """
    started = any(task.started is not None for task in record.tasks)
    if record.state is not State.RUNNING or started:
        return record
    with contextlib.suppress(StorageError):
        if job.distributed:
            return replace(record, state=State.PENDING)
    return record


def _view_without_backend(job: Job, entry: IndexEntry, error: ClusterError) -> JobView:
    """Return the view of a job whose backend does not answer: from its directory or the index."""
    try:
        record = job.directory.record()
    except (ClusterError, ValueError):
        record = None
    if record is None:
        return shipped_view(job, last_known_record(entry, error))
    save_record(job.session.store, entry, record)
    return final_view(job, record)


def final_view(job: Job, record: JobRecord) -> JobView:
    """Return the view of an ended job, with the end of the most informative log."""
    return JobView(record, shipped_tail(job, record), source="final", task=shown_task(record))


def shown_task(record: JobRecord) -> str:
    """Return the task whose log is shown; empty for a single task."""
    return most_relevant_task(record) if len(record.tasks) > 1 else ""


def final_record(job: Job) -> JobRecord:
    """Return the final record of a job with its events, if they can be read."""
    entry = index_entry_of(job)
    return _complete_record(job, entry.record or bare_record(entry))


def _complete_record(job: Job, stored: JobRecord) -> JobRecord:
    """Return the final record with its events, which are not in the index."""
    try:
        found = job.directory.record()
    except ClusterError as error:
        return _with_note(stored, error)
    except ValueError:
        return stored
    if found is None:
        return stored
    found.links = {**stored.links, **found.links}
    return found


def _live_view(job: Job, entry: IndexEntry) -> JobView | None:
    try:
        agent = job.agent()
        if agent is None:
            return None
        record = agent.status()
    except (StorageError, NotListeningError):
        raise
    except (ClusterError, FileNotFoundError):
        return None
    if record.job_id != job.id:
        return None
    if record.state.ended:
        if not record.pending:
            return None
        record.state = State.FINISHING  # its record is not published yet
    merged = merge_live(entry.record or bare_record(entry), record)
    save_record(job.session.store, entry, merged)
    task = chief_of_record(record) if record.tasks else job.chief
    # Only tasks of a gang have helpers.
    streams = STREAMS if len(record.tasks) > 1 else PROGRAM_STREAMS
    tail = _live_tail(agent, task, streams) if may_have_log(record, task) else ""
    return JobView(merged, tail, record.pending, "live", task if len(record.tasks) > 1 else "")


def _live_tail(agent: AgentClient, task: str, streams: tuple[str, ...]) -> str:
    tail = Tail()
    with contextlib.suppress(ClusterError):
        for stream in streams:
            tail.add(agent.log(task, stream, -TAIL_BYTES, TAIL_BYTES)[0])
    return tail.text()


def may_have_log(record: JobRecord, task: str) -> bool:
    """Whether a task may have a log: its program has been started."""
    found = find_task(record, task)
    return found is None or len(record.tasks) < 2 or found.started is not None


def merge_live(before: JobRecord, live: JobRecord) -> JobRecord:
    """Return the record of the agent, with the fields that only the client has."""
    live.links = {**before.links, **live.links}
    live.application_id = live.application_id or before.application_id
    live.queue = live.queue or before.queue
    names = {phase.name for phase in live.phases}
    live.phases = [phase for phase in before.phases if phase.name not in names] + live.phases
    return live


def shipped_tail(job: Job, record: JobRecord) -> str:
    """Return the end of the shipped streams; empty if nothing can be read.

    The relative order of the streams is not known. The more important one is last: stderr of a
    failed job, stdout of any other.
    """
    failed = record.state is State.FAILED
    streams = FAILED_ORDER if failed else SHOWN_ORDER
    return _shipped(job, record, streams)[0]


def shipped_view(job: Job, record: JobRecord, pending: str = "") -> JobView:
    """Return the view of a running job without agent: the shipped log and its age."""
    tail, shipped_at = _shipped(job, record, SHOWN_ORDER)
    behind = None if shipped_at is None else max(0.0, time.time() - shipped_at)
    aged = replace(record, behind=behind)
    return JobView(aged, tail, pending, "shipped", shown_task(record))


def _shipped(job: Job, record: JobRecord, streams: tuple[str, ...]) -> tuple[str, float | None]:
    tail, modified = Tail(), None
    try:
        task = most_relevant_task(record) if record.tasks else job.chief
        log = ShippedLog(job.directory, task, _last_attempt(record, task))
        log.refresh()
        modified = log.modified
        for stream in streams:
            if log.length(stream):
                tail.add(log.read(stream, -TAIL_BYTES, TAIL_BYTES))
    except (ClusterError, FileNotFoundError, ValueError):
        return tail.text(), modified
    return tail.text(), modified


def _last_attempt(record: JobRecord, task: str) -> str | None:
    """Return the attempt of the record if it has a log; None: the newest shipped attempt."""
    found = find_task(record, task)
    if found is None or (task == ONLY_TASK and len(record.tasks) < 2):
        return None
    name = attempt_name(found.epoch, found.attempt)
    return name if any(key.startswith(f"{task}/{name}/") for key in record.logs) else None
