"""How long the logs of a job are now, as its directory tells; and whether the job has ended.

For whoever follows a job that does not answer itself. Reads no log and does not wait.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_jobs.logs import LogKey, shipped_attempts, shipped_lengths, shipped_tasks
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import JobRecord
from submarine_server.logs.reader import LogReader, recorded

#: In place of a list of tasks: all that there are.
EVERY = "*"
EVERYTHING = frozenset([EVERY])
#: Logs that are looked up one by one when a job has ended.
MAX_LOOKED_UP = 64


@dataclass(frozen=True)
class Survey:
    """What was found.

    Attributes
    ----------
    lengths
        Bytes of each log.
    ended
        The job has, and these are the lengths for good.
    behind
        Seconds since the newest piece was shipped; None before the first.
    """

    lengths: dict[LogKey, int]
    ended: bool
    behind: float | None


def survey(
    reader: LogReader,
    tasks: Collection[str],
    known: Collection[LogKey],
    *,
    history: bool,
    ask: bool,
) -> Survey:
    """Look now; blocks.

    Parameters
    ----------
    tasks
        Whose logs are of interest; ``EVERY`` for all.
    known
        Logs that were heard of.
    history
        Attempts of which nobody has heard are of interest, too.
    ask
        Ask the cluster, too, whether the job still is: one that died left no record.
    """
    final = reader.final(ask=True)
    lost = False
    if final is None and ask:
        with contextlib.suppress(SubmarineError, FileNotFoundError):
            lost = reader.job.record().state.ended
            final = reader.final(ask=True)
    if final is not None:
        lengths = final_lengths(reader, final)
        if history and reader.job.distributed:
            lengths = {**recorded(shipped_lengths(reader.job.directory)), **lengths}
        missing = [key for key in known if key not in lengths]
        lengths.update(reader.lengths(missing[:MAX_LOOKED_UP]))
        return Survey(lengths, True, None)
    lengths = shipped_now(reader, tasks)
    moments = [reader.shipped(key).modified for key in list(lengths)[-MAX_LOOKED_UP:]]
    newest = max((moment for moment in moments if moment is not None), default=None)
    behind = None if newest is None else max(0.0, time.time() - newest)
    return Survey(lengths, lost, behind)


def final_lengths(reader: LogReader, record: JobRecord) -> dict[LogKey, int]:
    """The logs of an ended job; walks the job directory only where the record tells of none."""
    lengths = recorded(record.logs)
    if not lengths:
        with contextlib.suppress(ClusterError, FileNotFoundError):
            lengths = recorded(shipped_lengths(reader.job.directory))
    return lengths


def shipped_now(reader: LogReader, tasks: Collection[str]) -> dict[LogKey, int]:
    """What was shipped of these tasks, listed now: a call for each, and one for each attempt."""
    lengths: dict[LogKey, int] = {}
    names: Iterable[str] = tasks
    if EVERY in tasks:
        names = shipped_tasks(reader.job.directory)[:MAX_MERGED_TASKS]
    for task in names:
        for attempt in shipped_attempts(reader.job.directory, task):
            lengths.update(
                reader.lengths([LogKey(task, attempt, stream) for stream in layout.STREAMS])
            )
    return lengths
