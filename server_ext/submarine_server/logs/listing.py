"""List the logs of a job with their lengths.

The logs of an ended job are in its record. Of a running job, uploaded logs and logs of running
tasks are listed. The exact length is requested only for some tasks.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs import (
    ALL,
    LogReader,
    final_lengths,
    list_shipped,
    shipped_attempts,
)
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import JobRecord, LogKey, attempt_order, layout
from submarine_runtime.translation import _
from submarine_server.views import LogInfoJson

#: Maximum number of logs for which the exact length is requested, and number of threads.
MAX_EXACT, THREADS = 16, 4
#: Maximum number of listed logs.
MAX_LISTED = 4096


def list_logs(reader: LogReader) -> list[LogInfoJson]:
    """Return all logs as ``ILogInfo`` in order of task, attempt and stream; blocks."""
    final = reader.final_record(check_directory=True)
    lengths = final_lengths(reader, final) if final is not None else _running_lengths(reader)
    return [
        {"task": key.task, "attempt": key.attempt, "stream": key.stream, "length": lengths[key]}
        for key in sorted(lengths, key=_sort_key)[:MAX_LISTED]
    ]


def _sort_key(key: LogKey) -> tuple[str, int, tuple[int, int], str]:
    role, index = layout.split_task(key.task)
    return role, index, key.order, key.stream


def _running_lengths(reader: LogReader) -> dict[LogKey, int]:
    lengths = list_shipped(reader, ALL)
    record = _live_record(reader)
    running: list[LogKey] = []
    for task in record.tasks if record is not None else []:
        if task.started is not None and task.finished is None:
            attempt = layout.attempt_name(task.epoch, task.attempt)
            running += [LogKey(task.task, attempt, stream) for stream in layout.STREAMS]
    lengths.update({key: lengths.get(key, 0) for key in running[: 2 * MAX_MERGED_TASKS]})
    with ThreadPoolExecutor(THREADS, "submarine-lengths") as pool:
        exact = running[:MAX_EXACT]
        for key, live in zip(
            exact, pool.map(lambda key: reader.live(key, 0, 0), exact), strict=True
        ):
            if live is not None:
                lengths[key] = max(lengths[key], live[1])
    # Few jobs have helpers; a page learns of a new log from its first bytes.
    return {k: n for k, n in lengths.items() if n or k.stream != layout.HELPER_STREAM}


def _live_record(reader: LogReader) -> JobRecord | None:
    client = reader.client()
    if client is None:
        return None
    try:
        return client.status()
    except (ClusterError, ValueError, KeyError, TypeError):
        return None


def newest_attempt(reader: LogReader, task: str) -> str:
    """Return the newest attempt of a task that may have a log; blocks.

    Raises
    ------
    UsageError
        If there is none.
    """
    final = reader.final_record(check_directory=True)
    if final is not None:
        found = [key.attempt for key in final_lengths(reader, final) if key.task == task]
    else:
        found = shipped_attempts(reader.job.directory, task)
        record = _live_record(reader)
        for item in record.tasks if record is not None else []:
            if item.task == task and item.started is not None:
                found.append(layout.attempt_name(item.epoch, item.attempt))
    if not found:
        raise UsageError(
            _("Task {task} of {id} has no log yet.").format(task=task[:40], id=reader.job.id)
        )
    return max(found, key=attempt_order)
