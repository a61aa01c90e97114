"""What has happened to a job's tasks since one looked last, for somebody who waits beside its log.

States and reasons for a wait are the waiting one's own (``cli_waiting``).
"""

from __future__ import annotations

from dataclasses import replace

from submarine_jobs.display.sanitized_record import tame
from submarine_jobs.display.timeline import timeline
from submarine_jobs.text import one_line
from submarine_runtime.protocol.record import JobRecord


class Changes:
    """Tells each restart, failure and warning once."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def of(self, record: JobRecord) -> list[str]:
        """Lines about events of ``record`` that were not told; the newest few and their number."""
        fresh = [e for e in record.events if e.seq > self._told.get(e.writer, -1)]
        for event in fresh:
            self._told[event.writer] = max(event.seq, self._told.get(event.writer, -1))
        if not fresh:
            return []
        seen = tame(replace(record, events=fresh))
        moments, older = timeline(seen)
        first = [f"... {older} earlier events"] if older else []
        return first + [one_line(f"{m.word}: {m.sentence}", 300) for m in moments]
