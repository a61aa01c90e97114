"""How far a reader has come in a job's log: a vector {task/attempt/stream: offset}.

Keeps a log free of lost and doubled bytes whatever the other side sends again after a broken
connection. Does not talk to anybody (``live``) and reads nothing (``shipped_log``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from submarine_jobs.access import FIRST_ATTEMPT, LogChunk
from submarine_runtime.protocol import layout

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Most entries of the vector that travel in one request; what is left out is sent again by the
#: other side and dropped here.
MAX_AT = 400


class LogKey(NamedTuple):
    """One stream of one attempt of one task; written ``worker:0/e1-a1/stdout``."""

    task: str
    attempt: str
    stream: str

    def __str__(self) -> str:
        return f"{self.task}/{self.attempt}/{self.stream}"


def key_of(text: str) -> LogKey | None:
    """The key written so, or None for any other text."""
    parts = text.split("/")
    if len(parts) != 3 or parts[2] not in layout.STREAMS or not layout.parse_attempt(parts[1]):
        return None
    try:
        layout.split_task(parts[0])
    except ValueError:
        return None
    return LogKey(*parts)


def order(attempt: str) -> tuple[int, int]:
    """By which attempts sort: epoch, then attempt; what is no attempt comes first."""
    return layout.parse_attempt(attempt) or (0, 0)


class LogPosition:
    """How far one reader has come.

    Parameters
    ----------
    at
        Where to begin; what is not named begins at 0.
    """

    def __init__(self, at: Mapping[LogKey, int] | None = None) -> None:
        self._offsets: dict[LogKey, int] = dict(at or {})

    def of(self, key: LogKey) -> int:
        """The offset of the next byte to read."""
        return self._offsets.get(key, 0)

    def move(self, key: LogKey, offset: int) -> None:
        """Go to ``offset``."""
        self._offsets[key] = offset

    @property
    def keys(self) -> list[LogKey]:
        """All streams in which something was read or skipped."""
        return list(self._offsets)

    def newest(self, task: str) -> str | None:
        """The newest attempt of a task that has been seen."""
        found = [key.attempt for key in self._offsets if key.task == task]
        return max(found, key=order, default=None)

    def fresh(self, chunk: LogChunk) -> LogChunk | None:
        """The part of ``chunk`` that was not read before, and go behind it; None if there is none.

        A chunk that begins later than the position is taken as it is: ask ``gap`` first.
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
        """What asks a coordinator, or the agent of a job of one task, to go on from here."""
        wanted = list(tasks)
        ordered = sorted(self._offsets.items(), key=lambda item: order(item[0].attempt))
        at = ",".join(f"{key}={offset}" for key, offset in ordered[-MAX_AT:])
        words: dict[str, str | int] = {name: self._alone(name) for name in layout.STREAMS}
        words["tasks"] = ",".join(wanted)
        return {**words, "at": at} if at else words

    def _alone(self, stream: str) -> int:
        """Offset in ``stream`` where only one task was read: an agent knows no other."""
        tasks = {key.task for key in self._offsets}
        if len(tasks) != 1:
            return 0
        task = tasks.pop()
        return self.of(LogKey(task, self.newest(task) or FIRST_ATTEMPT, stream))


def start_at(job: JobHandle, task: str, offsets: Mapping[str, int]) -> LogPosition:
    """A position that begins at these offsets of the newest attempt of ``task``."""
    if not any(offsets.values()):
        return LogPosition()
    attempt = next(reversed(job.attempts(task)), FIRST_ATTEMPT)
    return LogPosition({LogKey(task, attempt, name): place for name, place in offsets.items()})
