"""Lines about new events of a job, shown while a command waits for it.

``frontends.wait_display`` shows the states and the reasons of waits.
"""

from __future__ import annotations

from dataclasses import replace

from submarine_jobs.display.sanitized_record import sanitize
from submarine_jobs.display.timeline import timeline
from submarine_jobs.text import one_line
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.translation import _


class EventLines:
    """Returns each restart, failure and warning once."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def new_lines(self, record: JobRecord) -> list[str]:
        """Return lines about the new events of ``record``: the newest, and the number of others."""
        fresh = [e for e in record.events if e.seq > self._shown.get(e.writer, -1)]
        for event in fresh:
            self._shown[event.writer] = max(event.seq, self._shown.get(event.writer, -1))
        if not fresh:
            return []
        sanitized = sanitize(replace(record, events=fresh))
        entries, older = timeline(sanitized)
        first = [_("... {older} earlier events").format(older=older)] if older else []
        return first + [one_line(f"{m.word}: {m.sentence}", 300) for m in entries]
