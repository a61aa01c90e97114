"""Who follows the logs of a job, and what they want between them; asks nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from submarine_jobs.logs import LogKey
from submarine_server.logs.lengths import EVERY, EVERYTHING

#: Tasks that are named in a request; of more all are heard.
MAX_NAMED = 64


class Follower(Protocol):
    """Who follows: tasks, bytes before the end where logs begin, whether it goes on from a place.

    ``tail`` None: all there is, of every attempt.
    """

    tasks: Sequence[str]
    tail: int | None
    resumes: bool

    def heard(self, key: LogKey) -> None:
        """Take note that this log has grown; must not block."""

    def changed(self) -> None:
        """Take note that the live path came or went, or that the job has ended."""


class Followers:
    """All followers of one job."""

    def __init__(self) -> None:
        self._all: set[Follower] = set()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, follower: Follower) -> None:
        """Begin to tell it."""
        self._all.add(follower)

    def discard(self, follower: Follower) -> None:
        """Tell it no more."""
        self._all.discard(follower)

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that any of them wants."""
        names = frozenset(name for follower in self._all for name in follower.tasks)
        return EVERYTHING if EVERY in names or len(names) > MAX_NAMED else names

    @property
    def history(self) -> bool:
        """Whether one of them wants attempts that are over."""
        return any(wants_history(follower) for follower in self._all)

    def heard(self, key: LogKey) -> None:
        """Tell all that a log has grown."""
        for follower in self._all:
            follower.heard(key)

    def changed(self) -> None:
        """Tell all that something else has changed."""
        for follower in self._all:
            follower.changed()


def wants_history(follower: Follower) -> bool:
    """Whether it may want bytes of attempts that are over."""
    return follower.resumes or follower.tail is None
