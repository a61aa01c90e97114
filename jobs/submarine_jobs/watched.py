"""What the watcher keeps of one job on display; no behaviour but making a view of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from submarine_jobs.observing import bare_record
from submarine_jobs.store import Known
from submarine_jobs.tail import Tail
from submarine_jobs.view import JobView
from submarine_jobs.viewing import shipped_tail
from submarine_runtime.protocol.record import JobRecord

if TYPE_CHECKING:
    from submarine_jobs.job import Job

Callback = Callable[[JobView], None]


class Watched:
    """One job on display."""

    def __init__(self, job: Job, known: Known) -> None:
        self.job = job
        self.record: JobRecord = known.record or bare_record(known)
        self.callbacks: dict[int, Callback] = {}
        self.tail = Tail()
        self.position = {"stdout": 0, "stderr": 0}
        self.seen_log = False
        self.unheard = 0
        self.attached = False
        self.listening: asyncio.Task[None] | None = None
        self.pending = ""
        self.source = "backend"
        self.published: float = 0.0
        self.dirty = False

    def view(self) -> JobView:
        """What subscribers see now."""
        return JobView(self.record, self.tail.text(), self.pending, self.source)

    def last_tail(self, record: JobRecord) -> str:
        """The end of an ended job's log: as it was heard, where it was heard to the end."""
        ends = {key.rpartition("/")[2]: length for key, length in record.logs.items()}
        heard = all(self.position.get(stream) == length for stream, length in ends.items())
        return self.tail.text() if ends and heard else shipped_tail(self.job, record)
