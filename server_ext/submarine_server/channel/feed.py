"""Base class of feeds, their services, and flow control of log data."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_server.displays import JobDisplays, MetricsDisplays, WorkflowDisplays
    from submarine_server.monitor import JobMonitor
    from submarine_server.service import JobService

#: A message without ``id``, or its encoded text.
Message = Mapping[str, Any] | str
#: Sends a message; returns when the connection has accepted it, so that a feed has at most one
#: message in transit.
Send = Callable[[Message], Awaitable[None]]
#: Maximum number of unacknowledged bytes of log data per subscription.
WINDOW = 1 << 20


class Credit:
    """Unacknowledged log data of a subscription.

    Parameters
    ----------
    window
        Maximum number of unacknowledged bytes.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._spent = 0
        self._given = asyncio.Event()

    @property
    def left(self) -> int:
        """Number of bytes that may be sent now."""
        return max(0, self._window - self._spent)

    def spend(self, count: int) -> None:
        """Count ``count`` sent bytes."""
        self._spent += count

    def give(self, count: int) -> None:
        """Count ``count`` acknowledged bytes, at most the sent ones."""
        self._spent = max(0, self._spent - max(0, count))
        self._given.set()

    async def wait(self, count: int = 1) -> int:
        """Wait until ``count`` bytes (at most the window) may be sent; return how many may."""
        while self.left < min(count, self._window):
            self._given.clear()
            await self._given.wait()
        return self.left


@dataclass(frozen=True)
class ChannelServices:
    """Services for feeds, shared by all connections of the server."""

    service: JobService
    monitor: JobMonitor
    jobs: JobDisplays
    metrics: MetricsDisplays
    workflows: WorkflowDisplays


class Feed(ABC):
    """One subscription of a connection.

    The connection creates, runs and cancels the feed. If ``run`` returns, the client receives
    ``end``. If ``run`` or the constructor raises a ``SubmarineError``, the client receives the
    error. Both end the subscription. When it is cancelled, ``run`` must release all resources.

    Parameters
    ----------
    request
        The client's message. The constructor validates the fields that it uses, raises UsageError,
        and must not block.
    send
        Sends messages without ``id``.
    credit
        For log data: call ``wait`` before and ``spend`` after sending.
    """

    kind: ClassVar[str]

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        self.services = services
        self.send = send
        self.credit = credit

    @abstractmethod
    async def run(self) -> None:
        """Send messages until there will be no more."""


def job_id_in(request: Mapping[str, Any]) -> str:
    """Return the job id of a subscription.

    Raises
    ------
    UsageError
        If it is missing or invalid.
    """
    job = request.get("job")
    if isinstance(job, str) and layout.is_job_id(job):
        return job
    raise UsageError(
        _("`job` is not the id of a job."), _("Give the complete id that `submarine list` shows.")
    )


def int_in(
    request: Mapping[str, Any], name: str, minimum: int, maximum: int, default: int | None = None
) -> int:
    """Return an integer between ``minimum`` and ``maximum``.

    Raises
    ------
    UsageError
        If it is invalid, or missing without a ``default``.
    """
    value = request.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
        return value
    raise UsageError(
        _("`{name}` must be a whole number from {minimum} to {maximum}.").format(
            name=name, minimum=minimum, maximum=maximum
        )
    )
