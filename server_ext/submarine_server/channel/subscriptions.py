"""One page of a browser: what it has subscribed to, in both directions, and what that may cost.

Whatever a page sends is answered, never raised. A page costs at most one message a subscription
besides what its socket holds. Does not know how bytes travel (``socket``) nor what the feeds say.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_server.base import ApiError, api_error
from submarine_server.channel.feed import Credit, Feed, Message, Send, Services, number_in

log = logging.getLogger(__name__)

#: Subscriptions of one page at a time.
MOST = 64
#: What JavaScript can count to.
_LARGEST = (1 << 53) - 1
#: In place of the number of a subscription, in answers to what named none.
NOBODY = -1

Write = Callable[[str], Awaitable[None]]
Maker = Callable[[Services, Mapping[str, Any], Send, Credit], Feed]


@dataclass
class Subscription:
    """A feed at work."""

    credit: Credit
    task: asyncio.Task[None]


class GoneError(Exception):
    """The page has gone away; raised by ``Write``."""


class Page:
    """The subscriptions of one websocket.

    Parameters
    ----------
    write
        Sends one text; returns when the socket has taken it, raises GoneError when it is closed.
    kinds
        Kind of a subscription -> what makes its feed.
    """

    def __init__(self, services: Services, write: Write, kinds: Mapping[str, Maker]) -> None:
        self._services = services
        self._write = write
        self._kinds = kinds
        self._subscriptions: dict[int, Subscription] = {}
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def subscribed(self) -> int:
        """How many subscriptions there are."""
        return len(self._subscriptions)

    async def receive(self, text: str | bytes) -> None:
        """Take one message of the page; waits only to tell it of its mistakes."""
        number = NOBODY
        try:
            words = _parsed(text)
            number = number_in(words, "id", 0, _LARGEST)
            self._obey(number, words)
        except SubmarineError as error:
            await self._tell(number, error)

    def _obey(self, number: int, words: Mapping[str, Any]) -> None:
        match words.get("op"):
            case "subscribe":
                self._subscribe(number, words)
            case "unsubscribe":
                self._drop(number)
            case "ack":
                count = number_in(words, "bytes", 0, _LARGEST)
                # An answer to what was sent before its end is not a mistake.
                if (subscription := self._subscriptions.get(number)) is not None:
                    subscription.credit.give(count)
            case _:
                raise UsageError("`op` must be subscribe, unsubscribe or ack.")

    def _subscribe(self, number: int, words: Mapping[str, Any]) -> None:
        if number in self._subscriptions:
            raise UsageError(f"{number} is subscribed already.", "Unsubscribe it first.")
        if len(self._subscriptions) >= MOST:
            raise UsageError(f"A page may have {MOST} subscriptions.", "Unsubscribe one first.")
        kind = words.get("kind")
        make = self._kinds.get(kind) if isinstance(kind, str) else None
        if make is None:
            raise UsageError(f"`kind` must be one of {', '.join(sorted(self._kinds))}.")

        async def send(message: Message) -> None:
            await self.send(message, number)

        credit = Credit()
        feed = make(self._services, words, send, credit)
        task = asyncio.get_running_loop().create_task(self._run(number, feed))
        self._subscriptions[number] = Subscription(credit, task)

    async def _run(self, number: int, feed: Feed) -> None:
        """Run a feed to its end, say how it ended, and forget it."""
        me = asyncio.current_task()
        try:
            try:
                await feed.run()
            except GoneError:
                return
            except Exception as error:
                await self._tell(number, error)
            else:
                await self.send({"type": "end"}, number)
        except GoneError:
            return
        finally:
            found = self._subscriptions.get(number)
            if found is not None and found.task is me:
                del self._subscriptions[number]

    def _drop(self, number: int) -> None:
        subscription = self._subscriptions.pop(number, None)
        if subscription is not None:
            subscription.task.cancel()

    async def _tell(self, number: int, error: Exception) -> None:
        """Say what is wrong with a subscription; what is a fault of ours is told in the log."""
        said = api_error(error)
        if said is None:
            log.error("a subscription failed", exc_info=error)
            said = ApiError(500, "The server has failed; its log says more.", "", "internal")
        with contextlib.suppress(GoneError):
            await self.send({"type": "error", **said.body()}, number)

    async def send(self, message: Message, number: int | None = None) -> None:
        """Send one message when it is its turn; raises GoneError when the page has gone.

        Parameters
        ----------
        message
            An object, or the text of one, which many pages may share.
        number
            The subscription that it belongs to.
        """
        text = message if isinstance(message, str) else _text(message)
        if number is not None:
            text = f'{{"id":{number},{text[1:]}'
        async with self._turn:
            if self._closed:
                raise GoneError
            await self._write(text)

    def close(self) -> None:
        """End every subscription; safe to call twice."""
        self._closed = True
        for number in list(self._subscriptions):
            self._drop(number)


def _text(message: Mapping[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def _parsed(text: str | bytes) -> Mapping[str, Any]:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        words = None
    if isinstance(words, dict):
        return words
    raise UsageError("That is no JSON object.", 'Send {"op": ..., "id": ...}.')
