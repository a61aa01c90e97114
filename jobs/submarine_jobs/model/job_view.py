"""View of a job at one moment: the record, the end of its log, how fresh it is."""

from __future__ import annotations

from dataclasses import dataclass

from submarine_runtime.protocol.record import JobRecord


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
