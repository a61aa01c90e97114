"""Snapshot of a job for display: record, end of the log, source."""

from __future__ import annotations

from dataclasses import dataclass

from submarine_runtime.protocol import JobRecord


@dataclass(frozen=True)
class JobView:
    """Snapshot of a job for display.

    Parameters
    ----------
    tail
        The last lines of all streams in order of arrival, at most 16 KiB, decoded with
        replacement characters. Escape sequences and carriage returns are not removed.
    pending
        One sentence that states why the job waits; empty if it does not wait.
    task
        The task of ``tail``; empty if the job has only one task.
    source
        ``live`` (from the job's port), ``shipped`` (from the job directory), ``final`` or
        ``backend``.
    """

    record: JobRecord
    tail: str = ""
    pending: str = ""
    source: str = "backend"
    task: str = ""
