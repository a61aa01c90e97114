"""The position of a reader in the logs of a job: a vector {task/attempt/stream: offset}.

The position detects lost and repeated bytes after a broken connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from submarine_jobs.access import FIRST_ATTEMPT, LogChunk
from submarine_runtime.protocol import layout

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Maximum number of entries in one request. The server sends the logs of omitted entries again,
#: and the reader drops them.
MAX_AT = 400


class LogKey(NamedTuple):
    """One stream of one attempt of one task; written ``worker:0/e1-a1/stdout``."""

    task: str
    attempt: str
    stream: str

    def __str__(self) -> str:
        return f"{self.task}/{self.attempt}/{self.stream}"


def key_of(text: str) -> LogKey | None:
    """Parse a key; return None for any other text."""
    parts = text.split("/")
    if len(parts) != 3 or parts[2] not in layout.STREAMS or not layout.parse_attempt(parts[1]):
        return None
    try:
        layout.split_task(parts[0])
    except ValueError:
        return None
    return LogKey(*parts)


def order(attempt: str) -> tuple[int, int]:
    """Return the sort key of an attempt: epoch, then number; invalid names come first."""
    return layout.parse_attempt(attempt) or (0, 0)


class LogPosition:
    """The position of one reader.

    Parameters
    ----------
    at
        Start offsets; the default is 0.
    """

    def __init__(self, at: Mapping[LogKey, int] | None = None) -> None:
        self._offsets: dict[LogKey, int] = dict(at or {})

    def of(self, key: LogKey) -> int:
        """Return the offset of the next byte to read."""
        return self._offsets.get(key, 0)

    def move(self, key: LogKey, offset: int) -> None:
        """Set the offset of a stream."""
        self._offsets[key] = offset

    @property
    def keys(self) -> list[LogKey]:
        """The streams that have an offset."""
        return list(self._offsets)

    def newest(self, task: str) -> str | None:
        """Return the newest attempt of a task that has an offset."""
        found = [key.attempt for key in self._offsets if key.task == task]
        return max(found, key=order, default=None)

    def fresh(self, chunk: LogChunk) -> LogChunk | None:
        """Return the unread part of ``chunk`` or None, and move the position behind the chunk.

        A chunk that begins behind the position is returned unchanged: callers check for gaps.
        """
        key = LogKey(chunk.task, chunk.attempt, chunk.stream)
        known = self.of(key)
        if chunk.end <= known:
            return None
        self._offsets[key] = chunk.end
        if chunk.offset >= known:
            return chunk
        return replace(chunk, offset=known, data=chunk.data[known - chunk.offset :])

    def query(self, tasks: Iterable[str]) -> dict[str, str | int]:
        """Return the query that makes a coordinator or agent continue from this position."""
        selected = list(tasks)
        ordered = sorted(self._offsets.items(), key=lambda item: order(item[0].attempt))
        at = ",".join(f"{key}={offset}" for key, offset in ordered[-MAX_AT:])
        words: dict[str, str | int] = {name: self._alone(name) for name in layout.STREAMS}
        words["tasks"] = ",".join(selected)
        return {**words, "at": at} if at else words

    def _alone(self, stream: str) -> int:
        """Return the offset in ``stream`` if only one task was read, for a single agent."""
        tasks = {key.task for key in self._offsets}
        if len(tasks) != 1:
            return 0
        task = tasks.pop()
        return self.of(LogKey(task, self.newest(task) or FIRST_ATTEMPT, stream))


def start_at(job: JobHandle, task: str, offsets: Mapping[str, int]) -> LogPosition:
    """Return a position at these offsets of the newest attempt of ``task``."""
    if not any(offsets.values()):
        return LogPosition()
    attempt = next(reversed(job.attempts(task)), FIRST_ATTEMPT)
    return LogPosition({LogKey(task, attempt, name): place for name, place in offsets.items()})
