"""Subscriptions of one connection: parse messages, run feeds, send their messages and errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_runtime.translation import _
from submarine_server.base import ApiError, api_error
from submarine_server.channel.feed import ChannelServices, Credit, Feed, Message, Send, int_in

log = logging.getLogger(__name__)

#: Maximum number of subscriptions.
MAX_SUBSCRIPTIONS = 64
#: Largest exact integer of JavaScript.
MAX_INT = (1 << 53) - 1
#: Id in errors about messages without a valid id.
NO_SUBSCRIPTION = -1

Write = Callable[[str], Awaitable[None]]
FeedFactory = Callable[[ChannelServices, Mapping[str, Any], Send, Credit], Feed]


@dataclass
class Subscription:
    """A running feed."""

    credit: Credit
    task: asyncio.Task[None]


class ConnectionClosedError(Exception):
    """The connection is closed; raised by ``Write``."""


class PageSubscriptions:
    """The subscriptions of one websocket.

    Parameters
    ----------
    write
        Sends a text; returns when the socket has accepted it, raises ConnectionClosedError.
    kinds
        Factories of feeds by the kind of subscription.
    """

    def __init__(
        self, services: ChannelServices, write: Write, kinds: Mapping[str, FeedFactory]
    ) -> None:
        self._services = services
        self._write = write
        self._kinds = kinds
        self._subscriptions: dict[int, Subscription] = {}
        self._send_lock = asyncio.Lock()
        self._closed = False

    @property
    def subscribed(self) -> int:
        """Number of subscriptions."""
        return len(self._subscriptions)

    async def receive(self, text: str | bytes) -> None:
        """Handle a message of the client; errors are sent to it."""
        subscription_id = NO_SUBSCRIPTION
        try:
            request = _parse(text)
            subscription_id = int_in(request, "id", 0, MAX_INT)
            self._handle(subscription_id, request)
        except SubmarineError as error:
            await self._send_error(subscription_id, error)

    def _handle(self, subscription_id: int, request: Mapping[str, Any]) -> None:
        match request.get("op"):
            case "subscribe":
                self._subscribe(subscription_id, request)
            case "unsubscribe":
                self._cancel(subscription_id)
            case "ack":
                count = int_in(request, "bytes", 0, MAX_INT)
                # An acknowledgement may arrive after the end of its subscription.
                if (subscription := self._subscriptions.get(subscription_id)) is not None:
                    subscription.credit.give(count)
            case _:
                raise UsageError(_("`op` must be subscribe, unsubscribe or ack."))

    def _subscribe(self, subscription_id: int, request: Mapping[str, Any]) -> None:
        if subscription_id in self._subscriptions:
            raise UsageError(
                _("The subscription {subscription_id} already exists.").format(
                    subscription_id=subscription_id
                ),
                _("Unsubscribe it first."),
            )
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise UsageError(
                _("A page may have {max_subscriptions} subscriptions.").format(
                    max_subscriptions=MAX_SUBSCRIPTIONS
                ),
                _("Unsubscribe one first."),
            )
        kind = request.get("kind")
        factory = self._kinds.get(kind) if isinstance(kind, str) else None
        if factory is None:
            raise UsageError(
                _("`kind` must be one of {kinds}.").format(kinds=", ".join(sorted(self._kinds)))
            )

        async def send(message: Message) -> None:
            await self.send(message, subscription_id)

        credit = Credit()
        feed = factory(self._services, request, send, credit)
        task = asyncio.get_running_loop().create_task(self._run(subscription_id, feed))
        self._subscriptions[subscription_id] = Subscription(credit, task)

    async def _run(self, subscription_id: int, feed: Feed) -> None:
        """Run a feed to its end, send how it ended, and remove it."""
        me = asyncio.current_task()
        try:
            try:
                await feed.run()
            except ConnectionClosedError:
                return
            except Exception as error:
                await self._send_error(subscription_id, error)
            else:
                await self.send({"type": "end"}, subscription_id)
        except ConnectionClosedError:
            return
        finally:
            found = self._subscriptions.get(subscription_id)
            if found is not None and found.task is me:
                del self._subscriptions[subscription_id]

    def _cancel(self, subscription_id: int) -> None:
        subscription = self._subscriptions.pop(subscription_id, None)
        if subscription is not None:
            subscription.task.cancel()

    async def _send_error(self, subscription_id: int, error: Exception) -> None:
        """Send an error; log unexpected ones."""
        problem = api_error(error)
        if problem is None:
            log.error("a subscription failed", exc_info=error)
            problem = ApiError(500, _("The server failed. See its log."), "", "internal")
        with contextlib.suppress(ConnectionClosedError):
            await self.send({"type": "error", **problem.body()}, subscription_id)

    async def send(self, message: Message, subscription_id: int | None = None) -> None:
        """Send one message after the previous ones; raises ConnectionClosedError.

        Parameters
        ----------
        message
            An object, or its encoded text, which several connections may share.
        subscription_id
            Id of its subscription.
        """
        text = message if isinstance(message, str) else _to_json(message)
        if subscription_id is not None:
            text = f'{{"id":{subscription_id},{text[1:]}'
        async with self._send_lock:
            if self._closed:
                raise ConnectionClosedError
            await self._write(text)

    def close(self) -> None:
        """Cancel all subscriptions; may be called twice."""
        self._closed = True
        for subscription_id in list(self._subscriptions):
            self._cancel(subscription_id)


def _to_json(message: Mapping[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def _parse(text: str | bytes) -> Mapping[str, Any]:
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        request = None
    if isinstance(request, dict):
        return request
    raise UsageError(_("The message is not a JSON object."), _('Send {"op": ..., "id": ...}.'))
