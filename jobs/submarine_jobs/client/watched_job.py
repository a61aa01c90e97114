"""What the watcher keeps of one job on display: takes what is heard, makes a view of it."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import LogChunk, attempt_of, chunk_of
from submarine_jobs.client.job_ownership import noted_owner
from submarine_jobs.client.views import shipped_tail
from submarine_jobs.errors import ClusterError, StorageError
from submarine_jobs.logs import TAIL_BYTES, LogKey, LogPosition, Tail, key_of, order
from submarine_jobs.model import JobView, chief_in, telling_task
from submarine_jobs.tracking import Owner, attributed, remember
from submarine_runtime.protocol.record import Event, JobRecord

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job

Callback = Callable[[JobView], None]
#: Events that a display keeps of one job.
MAX_EVENTS = 200
#: An offset that no log reaches, and a number that no list of events does.
NO_LOG, NO_EVENTS = 1 << 60, 1 << 30


class HeardEvents:
    """The newest events of a job, each once, however often they are sent."""

    def __init__(self) -> None:
        self._kept: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._last: dict[str, int] = {}

    def add(self, event: Event) -> bool:
        """Take one; whether it is new."""
        if event.seq <= self._last.get(event.writer, -1):
            return False
        self._last[event.writer] = event.seq
        self._kept.append(event)
        return True

    @property
    def newest(self) -> list[Event]:
        """At most ``MAX_EVENTS``, in order of arrival."""
        return list(self._kept)


class Watched:
    """One job on display; with the end of its log, or without any of it."""

    def __init__(self, job: Job, record: JobRecord, *, tails: bool = True) -> None:
        self.job = job
        self.tails = tails
        self.record = record
        self.callbacks: dict[int, Callback] = {}
        self.tail = Tail()
        self.position = LogPosition()
        #: The task whose log is shown, once that is known; a job on display costs one stream.
        self.task = ""
        self.many = False
        self.events = HeardEvents()
        self.seen_log = False
        self.unheard = 0
        self.attached = False
        #: Whether the backend sees more than a wait; whether the job itself was heard, to its end.
        self.placed = self.heard = self.over = False
        #: Why the job's directory could not be read for an address.
        self.silent: StorageError | None = None
        self.listening: asyncio.Task[None] | None = None
        self.pending = ""
        self.source = "backend"
        self.published: float = 0.0
        self.dirty = False

    def begin(self, record: JobRecord) -> None:
        """Choose the task whose log is shown, and start near the end of it."""
        self.task = chief_in(record) if record.tasks else self.job.chief
        self.many = len(record.tasks) > 1 or len(self.job.task_names) > 1
        for text, length in record.logs.items():
            key = key_of(text)
            if key is not None and key.task == self.task:
                self.position.move(key, max(0, length - TAIL_BYTES))

    def wanted(self) -> tuple[dict[str, str | int], int]:
        """The request for the job's stream, and the number of events that are not wanted."""
        if not self.tails:
            return {"stdout": NO_LOG, "stderr": NO_LOG, "tasks": ""}, 0
        tasks = [self.task] if self.task else []
        words = {**self.position.query(tasks), "tail": TAIL_BYTES}
        return words, 0 if self.many else NO_EVENTS

    def hear(self, line: Mapping[str, Any]) -> bool:
        """Take a line about log or events; whether there is something new in it."""
        if line["type"] == "event":
            return self.events.add(Event.from_json(line["event"]))
        key = LogKey(str(line["task"]), attempt_of(line), str(line["stream"]))
        if line["type"] == "skip":
            self.position.move(key, max(int(line["to"]), self.position.of(key)))
            return False
        last = self.position.newest(key.task)
        chunk = self.position.fresh(chunk_of(line))
        if chunk is None or (self.many and chunk.task != self.task):
            return False
        if last is not None and order(key.attempt) > order(last):
            words = f"--- {key.task} was started again: attempt {key.attempt} ---\n"
            self.tail.add(LogChunk("stdout", 0, words.encode()))
        self.tail.add(chunk)
        return True

    def last_word(self) -> JobRecord | None:
        """The job's last word, which is there a moment before the backend sees the end."""
        try:
            record = self.job.directory.record()
        except (ClusterError, ValueError):
            return None
        known = self.job.known()
        if record is not None and known is not None:
            record.links = {**self.record.links, **record.links}
            remember(self.job.session.store, known, record)
        return record

    @functools.cached_property
    def _owner(self) -> Owner | None:
        return noted_owner(self.job)

    def view(self) -> JobView:
        """What subscribers see now."""
        events = self.events.newest
        record = replace(self.record, events=events) if events else self.record
        shown = self.task if len(record.tasks) > 1 else ""
        record = attributed(record, self._owner)
        return JobView(record, self.tail.text(), self.pending, self.source, shown)

    def last_tail(self, record: JobRecord) -> str:
        """The end of an ended job's log: as it was heard, where it was heard to the end."""
        if not self.tails:
            return ""
        task = self.task = telling_task(record)
        newest = self.position.newest(task)
        ends = {
            key: length
            for text, length in record.logs.items()
            if (key := key_of(text)) and (key.task, key.attempt) == (task, newest)
        }
        heard = all(self.position.of(key) == length for key, length in ends.items())
        return self.tail.text() if ends and heard else shipped_tail(self.job, record)
