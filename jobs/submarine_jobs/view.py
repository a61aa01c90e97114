"""What a mouth shows of a job at one moment: the record, the end of its log, how fresh it is."""

from __future__ import annotations

from dataclasses import dataclass

from submarine_runtime.protocol.record import JobRecord

#: What the detail of a record begins with that was not asked for anew.
LAST_KNOWN = "Last known"


def is_last_known(record: JobRecord) -> bool:
    """Whether its job may have gone on since, or ended, and nobody could be asked."""
    return not record.state.ended and record.detail.startswith(LAST_KNOWN)


@dataclass(frozen=True)
class JobView:
    """A job as it is shown.

    Parameters
    ----------
    tail
        The last lines of both streams in order of arrival, at most 16 KiB, decoded with
        replacement characters; raw otherwise (escapes and carriage returns are still in it).
    pending
        Why the job waits, one sentence; empty when it does not.
    task
        The task whose log ``tail`` is; empty where the job has only one.
    source
        ``live`` (from the job's port), ``shipped`` (from the job directory), ``final`` or
        ``backend``.
    """

    record: JobRecord
    tail: str = ""
    pending: str = ""
    source: str = "backend"
    task: str = ""
