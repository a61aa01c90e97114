"""Lengths of the logs of a job in the job directory, and whether the job has ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from submarine_jobs.errors import ClusterError, NoAccessError, SubmarineError
from submarine_jobs.logs.reader import LogReader, parsed_lengths
from submarine_jobs.logs.shipped_log import shipped_attempts, shipped_lengths, shipped_tasks
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import JobRecord, LogKey, layout

#: Stands for all tasks.
ALL_TASKS = "*"
ALL = frozenset([ALL_TASKS])
#: Maximum number of logs with individually checked lengths.
MAX_CHECKED = 64


@dataclass(frozen=True)
class LogStatus:
    """Lengths of the logs of a job.

    Attributes
    ----------
    lengths
        Bytes of each log.
    ended
        Whether the job has ended and the lengths are final.
    behind
        Seconds since the last upload; None before the first one.
    trouble
        Why the cluster could not be asked.
    """

    lengths: dict[LogKey, int]
    ended: bool
    behind: float | None
    trouble: SubmarineError | None = None


def log_status(
    reader: LogReader,
    tasks: Collection[str],
    known: Collection[LogKey],
    *,
    history: bool,
    check_cluster: bool,
) -> LogStatus:
    """Read the lengths; blocks.

    Parameters
    ----------
    tasks
        Names of tasks; ``ALL_TASKS`` for all.
    known
        Logs that are already known.
    history
        Include attempts that are not known.
    check_cluster
        Also ask the cluster whether the job is running: a lost job has no record.
    """
    final = reader.final_record(check_directory=True)
    ended, trouble = False, None
    if final is None and check_cluster:
        try:
            ended = reader.job.record().state.ended
            final = reader.final_record(check_directory=True)
        except NoAccessError:
            raise
        except SubmarineError as error:
            trouble = error
        except FileNotFoundError:
            pass
    if final is not None:
        lengths = final_lengths(reader, final)
        if history and reader.job.distributed:
            lengths = {**parsed_lengths(shipped_lengths(reader.job.directory)), **lengths}
        missing = [key for key in known if key not in lengths]
        lengths.update(reader.lengths(missing[:MAX_CHECKED]))
        return LogStatus(lengths, True, None)
    lengths = list_shipped(reader, tasks)
    times = [reader.shipped(key).modified for key in list(lengths)[-MAX_CHECKED:]]
    newest = max((moment for moment in times if moment is not None), default=None)
    behind = None if newest is None else max(0.0, time.time() - newest)
    return LogStatus(lengths, ended, behind, trouble)


def final_lengths(reader: LogReader, record: JobRecord) -> dict[LogKey, int]:
    """Return the logs of an ended job, from its record or else from the job directory."""
    lengths = parsed_lengths(record.logs)
    if not lengths:
        with contextlib.suppress(ClusterError, FileNotFoundError):
            lengths = parsed_lengths(shipped_lengths(reader.job.directory))
    return lengths


def list_shipped(reader: LogReader, tasks: Collection[str]) -> dict[LogKey, int]:
    """List the uploaded logs of these tasks: one call per task and one per attempt."""
    lengths: dict[LogKey, int] = {}
    names: Iterable[str] = tasks
    if ALL_TASKS in tasks:
        names = shipped_tasks(reader.job.directory)[:MAX_MERGED_TASKS]
    for task in names:
        for attempt in shipped_attempts(reader.job.directory, task):
            lengths.update(
                reader.lengths([LogKey(task, attempt, stream) for stream in layout.STREAMS])
            )
    return {k: n for k, n in lengths.items() if n or k.stream != layout.HELPER_STREAM}
