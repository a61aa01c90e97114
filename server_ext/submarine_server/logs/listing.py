"""Which logs a job has, and how long each is by now; and the one reader of each job.

An ended job's are in its record. Of a running one, those that were shipped and those of the tasks
that run are told; the exact length is asked of the few first tasks only. Reads no log.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from submarine_jobs.access import AgentClient
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs import LogKey, order, shipped_attempts
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import JobRecord
from submarine_server.logs.lengths import EVERYTHING, final_lengths, shipped_now
from submarine_server.logs.reader import LogReader
from submarine_server.service import Core

#: Jobs whose readers are kept.
MAX_READERS = 64
#: Logs whose exact length is asked for in one listing, and how many at once.
MAX_ASKED, AT_ONCE = 16, 4
#: Logs in one listing.
MAX_LISTED = 4096

_readers: WeakKeyDictionary[Core, OrderedDict[str, LogReader]] = WeakKeyDictionary()
_lock = Lock()


def reader_of(core: Core, job_id: str) -> LogReader:
    """The reader of a job's logs, shared by all that look; blocks.

    Raises
    ------
    JobNotFoundError
        If there is no such job.
    """
    with _lock:
        kept = _readers.setdefault(core, OrderedDict())
        found = kept.get(job_id)
    if found is None:
        found = LogReader(core.find(job_id))
        with _lock:
            found = kept.setdefault(job_id, found)
            while len(kept) > MAX_READERS:
                kept.popitem(last=False)
    return found


def list_logs(reader: LogReader) -> list[dict[str, Any]]:
    """All logs as ``ILogInfo``, by task, attempt and stream; blocks."""
    final = reader.final(ask=True)
    lengths = final_lengths(reader, final) if final is not None else _going(reader)
    return [
        {"task": key.task, "attempt": key.attempt, "stream": key.stream, "length": lengths[key]}
        for key in sorted(lengths, key=_place)[:MAX_LISTED]
    ]


def _place(key: LogKey) -> tuple[str, int, tuple[int, int], str]:
    role, index = layout.split_task(key.task)
    return role, index, order(key.attempt), key.stream


def _going(reader: LogReader) -> dict[LogKey, int]:
    lengths = shipped_now(reader, EVERYTHING)
    record = _status(reader)
    running: list[LogKey] = []
    for task in record.tasks if record is not None else []:
        if task.started is not None and task.finished is None:
            attempt = layout.attempt_name(task.epoch, task.attempt)
            running += [LogKey(task.task, attempt, stream) for stream in layout.STREAMS]
    lengths.update({key: lengths.get(key, 0) for key in running[: 2 * MAX_MERGED_TASKS]})
    with ThreadPoolExecutor(AT_ONCE, "submarine-lengths") as pool:
        asked = running[:MAX_ASKED]
        for key, told in zip(
            asked, pool.map(lambda key: reader.live(key, 0, 0), asked), strict=True
        ):
            if told is not None:
                lengths[key] = max(lengths[key], told[1])
    return lengths


def _status(reader: LogReader) -> JobRecord | None:
    address = reader.address()
    if address is None:
        return None
    try:
        return AgentClient(address).status()
    except (ClusterError, ValueError, KeyError, TypeError):
        return None


def newest_attempt(reader: LogReader, task: str) -> str:
    """The newest attempt of a task that has, or may have, a log; blocks.

    Raises
    ------
    UsageError
        If there is none.
    """
    final = reader.final(ask=True)
    if final is not None:
        found = [key.attempt for key in final_lengths(reader, final) if key.task == task]
    else:
        found = shipped_attempts(reader.job.directory, task)
        record = _status(reader)
        for item in record.tasks if record is not None else []:
            if item.task == task and item.started is not None:
                found.append(layout.attempt_name(item.epoch, item.attempt))
    if not found:
        raise UsageError(f"Task {task[:40]} of {reader.job.id} has no log yet.")
    return max(found, key=order)
