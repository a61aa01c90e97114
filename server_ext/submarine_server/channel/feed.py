"""What a subscription is made of: a feed that says something, the way to its page, its credit.

Does not know the websocket (``socket``) nor what a page has subscribed to (``page``); the feeds
themselves are ``jobs_feed``, ``job_feed``, ``metrics_feed``, ``log_feed``, ``starts_feed`` and
``workflow_feed``.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import layout

if TYPE_CHECKING:
    from submarine_server.displays import Displays, MetricsReaders, RunDisplays
    from submarine_server.monitor import JobsWatch
    from submarine_server.service import Core

#: A message without its ``id``, or its text.
Message = Mapping[str, Any] | str
#: Takes a message; returns when it has gone, which takes as long as the page is slow. A feed that
#: waits for it has never more than one message under way.
Send = Callable[[Message], Awaitable[None]]
#: Bytes of log data that may be under way to one subscription.
WINDOW = 1 << 20


class Credit:
    """How much log data a page has not acknowledged yet; the feed spends, the page gives back.

    Parameters
    ----------
    window
        Bytes that may be under way at once.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._spent = 0
        self._given = asyncio.Event()

    @property
    def left(self) -> int:
        """Bytes that may be sent now."""
        return max(0, self._window - self._spent)

    def spend(self, count: int) -> None:
        """Note that ``count`` bytes are being sent."""
        self._spent += count

    def give(self, count: int) -> None:
        """Note that the page has taken ``count`` bytes in; what was never sent does not count."""
        self._spent = max(0, self._spent - max(0, count))
        self._given.set()

    async def wait(self, count: int = 1) -> int:
        """Wait until at least ``count`` bytes (at most the window) may be sent; how many may."""
        while self.left < min(count, self._window):
            self._given.clear()
            await self._given.wait()
        return self.left


@dataclass(frozen=True)
class Services:
    """What feeds stand on: shared by all pages of the server."""

    core: Core
    jobs: JobsWatch
    displays: Displays
    metrics: MetricsReaders
    runs: RunDisplays


class Feed(ABC):
    """One subscription of one page.

    The page makes it, runs it and cancels it: ``run`` must let go of everything when it is
    cancelled. Where ``run`` returns, the page is told ``end``; where it or the constructor raises a
    ``SubmarineError``, the page is told that; both end the subscription.

    Parameters
    ----------
    words
        The client's message, unchecked: the constructor takes what it needs and raises UsageError
        for nonsense. It must not block.
    send
        Takes messages without ``id``.
    credit
        For log data: ``spend`` what is sent, and ``wait`` before.
    """

    kind: ClassVar[str]

    def __init__(
        self, services: Services, words: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        self.services = services
        self.send = send
        self.credit = credit

    @abstractmethod
    async def run(self) -> None:
        """Say what there is to say until nothing more will come."""


def job_in(words: Mapping[str, Any]) -> str:
    """The job that a subscription names.

    Raises
    ------
    UsageError
        If it names none.
    """
    job = words.get("job")
    if isinstance(job, str) and layout.is_job_id(job):
        return job
    raise UsageError("`job` is not the id of a job.", "Give the whole id, as `submarine list`.")


def number_in(
    words: Mapping[str, Any], name: str, least: int, most: int, otherwise: int | None = None
) -> int:
    """A whole number between ``least`` and ``most``.

    Raises
    ------
    UsageError
        If it is something else, or absent without an ``otherwise``.
    """
    value = words.get(name, otherwise)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise UsageError(f"`{name}` must be a whole number from {least} to {most}.")
