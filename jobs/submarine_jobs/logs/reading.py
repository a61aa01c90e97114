"""Read the current logs of a job by offset: from its agent while it runs, or the shipped log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from submarine_jobs.access import LogChunk
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs.shipped_log import ShippedLog, shipped_attempts
from submarine_jobs.model import find_task
from submarine_runtime.protocol import JobRecord, attempt_order, layout, parse_log_key
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle


def read_log(
    job: JobHandle, stream: str, offset: int, limit: int, task: str, attempt: str | None
) -> LogChunk:
    """Return bytes of one stream from ``offset`` (negative: from the end)."""
    if stream not in layout.STREAMS:
        raise UsageError(
            _("There is no log stream {stream!r}.").format(stream=stream),
            _("Choose stdout or stderr."),
        )
    check_log_names(task, attempt)
    if not job.final:
        with contextlib.suppress(ClusterError):
            client = job.agent()
            if client is not None:
                return client.log(task, stream, offset, limit, attempt)[0]
    shipped = ShippedLog(job.directory, task, attempt)
    shipped.refresh()
    return shipped.read(stream, offset, limit)


def read_attempts(
    job: JobHandle, stream: str, task: str, attempt: str | None
) -> Iterator[LogChunk]:
    """Yield the current log from its beginning."""
    check_log_names(task, attempt)
    shipped = ShippedLog(job.directory, task, attempt)
    shipped.refresh()
    end = 0
    for chunk in shipped.read_through(stream):
        end = chunk.end
        yield chunk
    while not job.final:
        chunk = read_log(job, stream, end, 1 << 20, task, attempt)
        if not chunk.data:
            return
        end = chunk.end
        yield chunk


def list_attempts(job: JobHandle, task: str, record: JobRecord) -> list[str]:
    """Return the attempts of a task that have or may have a log, oldest first."""
    found = {key.attempt for key in map(parse_log_key, record.logs) if key and key.task == task}
    with contextlib.suppress(ClusterError):
        found.update(shipped_attempts(job.directory, task))
    now = find_task(record, task)
    if now is not None and now.started is not None:
        found.add(layout.attempt_name(now.epoch, now.attempt))
    return sorted(found, key=attempt_order)


def started_attempts(task: str, record: JobRecord) -> set[str]:
    """Return the attempts of a task whose program was started, according to the events."""
    found: set[str] = set()
    for event in record.events:
        reported = event.data.get("task")
        if event.kind == "task" and isinstance(reported, dict) and reported.get("task") == task:
            found |= _named(reported.get("epoch"), reported.get("attempt"))
    return found


def unsaved_attempts(job: JobHandle, task: str, record: JobRecord) -> list[str]:
    """Return the attempts of a task that ran and have no saved log, oldest first.

    Returns nothing for a job that has not ended. A log of length 0 counts as saved.
    """
    ran: set[str] = set()
    for reported in (event.data.get("task") for event in record.events):
        if isinstance(reported, dict) and reported.get("task") == task and reported.get("started"):
            ran |= _named(reported.get("epoch"), reported.get("attempt"))
    if len(record.tasks) == 1 and record.tasks[0].started is not None:
        ran.add(layout.FIRST_ATTEMPT)  # a single task has no events of kind task
    saved = {key.attempt for key in map(parse_log_key, record.logs) if key and key.task == task}
    if not record.state.ended or ran <= saved:
        return []
    shipped = saved_attempts(job, task)
    return [] if shipped is None else sorted(ran - saved - shipped, key=attempt_order)


def saved_attempts(job: JobHandle, task: str) -> set[str] | None:
    """Return the attempts of a task that have shipped a log; None if the storage fails."""
    try:
        return set(shipped_attempts(job.directory, task))
    except ClusterError:
        return None


def _named(epoch: object, attempt: object) -> set[str]:
    if isinstance(epoch, int) and isinstance(attempt, int):
        return {layout.attempt_name(epoch, attempt)}
    return set()


def check_log_names(task: str, attempt: str | None) -> None:
    """Raise UsageError for an invalid task or attempt, because both become parts of a path."""
    try:
        layout.split_task(task)
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    if attempt is not None and layout.parse_attempt(attempt) is None:
        raise UsageError(
            _("{attempt!r} is not an attempt.").format(attempt=attempt[:40]),
            _("One looks like e1-a1."),
        )
