"""What a page asks for when it follows logs, checked; and where each log begins for it.

A log that the page names goes on there. Of a task that it has read before, everything newer comes
whole. Any other log begins ``tail`` bytes before its end, in the newest attempt; without ``tail``
everything comes. Asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.logs import LogKey, check, key_of, order
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_server.channel.feed import number_in
from submarine_server.logs import EVERY, GrowingLog

#: Logs that a page may go on with, and the largest offset in one.
MAX_AT, FARTHEST = 4096, (1 << 53) - 1
MAX_TAIL = 64 << 20
#: Seconds after the first news of a job within which a log is found that was there before.
SETTLING = 2.0
#: Bytes of a log that came up late and are sent though a tail was asked for: they are new.
MOST_NEW = 8 << 20


@dataclass(frozen=True)
class Wanted:
    """What a page asks for."""

    tasks: tuple[str, ...]
    at: Mapping[LogKey, int]
    tail: int | None

    @staticmethod
    def of(words: Mapping[str, Any]) -> Wanted:
        """Read it from the page's message.

        Raises
        ------
        UsageError
            If it makes no sense.
        """
        tail = None if words.get("tail") is None else number_in(words, "tail", 0, MAX_TAIL)
        return Wanted(_tasks(words.get("tasks")), _at(words.get("at")), tail)


def _tasks(names: Any) -> tuple[str, ...]:
    fine = isinstance(names, list) and 0 < len(names) <= MAX_MERGED_TASKS
    if not fine or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"`tasks` must be a list of 1 to {MAX_MERGED_TASKS} names.", 'Give ["*"] for all tasks.'
        )
    for name in names:
        if name != EVERY:
            check(name, None)
    return tuple(dict.fromkeys(names))


def _at(places: Any) -> dict[LogKey, int]:
    if places is None:
        return {}
    if not isinstance(places, dict) or len(places) > MAX_AT:
        raise UsageError(f"`at` must be an object of at most {MAX_AT} logs.")
    found = {}
    for text, offset in places.items():
        key = key_of(text)
        fine = isinstance(offset, int) and not isinstance(offset, bool)
        if key is None or not text.isprintable() or not fine or not 0 <= offset <= FARTHEST:
            raise UsageError(
                f"`at` holds {text[:60]!r}, which is no place in a log.",
                'One looks like "worker:0/e1-a1/stdout": 17.',
            )
        found[key] = offset
    return found


class Beginnings:
    """Where each log begins for one page."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._every = EVERY in wanted.tasks
        #: The oldest attempt of each task that the page has read.
        self._oldest: dict[str, tuple[int, int]] = {}
        #: The newest attempt of each task that was begun for this page.
        self._begun: dict[str, tuple[int, int]] = {}
        for key in wanted.at:
            place = order(key.attempt)
            self._oldest[key.task] = min(self._oldest.get(key.task, place), place)

    def wants(self, task: str) -> bool:
        """Whether the page asked for logs of this task."""
        return self._every or task in self._wanted.tasks

    def of(self, key: LogKey, logs: Mapping[LogKey, GrowingLog], ready: float | None) -> int | None:
        """The offset of the first byte to send; None: none of this log.

        Parameters
        ----------
        logs
            All that are known of the job.
        ready
            When the first of them was.
        """
        if key in self._wanted.at:
            return self._wanted.at[key]
        place, tail, known = order(key.attempt), self._wanted.tail, logs[key]
        if key.task in self._oldest:
            return 0 if place >= self._oldest[key.task] else None
        if tail is None:
            return 0
        begun = self._begun.get(key.task)
        newest = max(order(other.attempt) for other in logs if other.task == key.task)
        if begun is None and place < newest:
            return None
        if begun is not None and place < begun:
            return None
        self._begun[key.task] = max(place, begun or place)
        late = ready is not None and known.since > ready + SETTLING
        new = late and (known.first or 0) <= MOST_NEW
        if new or (begun is not None and place > begun):
            return 0
        return max(0, known.end - tail)
