"""The websocket of a page: who may open it, how much it takes in, how it waits for a slow page.

Everything is decided before the upgrade: authentication, authorisation, origin. Never counts as
activity: a page that only watches keeps no server from being culled. What is said is ``page``'s.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from submarine_server import API, version
from submarine_server.base import guarded
from submarine_server.channel.feed import Services
from submarine_server.channel.kinds import KINDS
from submarine_server.channel.subscriptions import GoneError, Page

#: Bytes of one message of a page; the longest that makes sense resumes the logs of a large gang.
MAX_MESSAGE = 256 << 10
#: Pages of one server at a time.
MAX_PAGES = 500
#: Names of the server's settings.
SERVICES, PAGES = "submarine_services", "submarine_pages"


class ChannelHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``GET channel``, upgraded."""

    page: Page | None = None
    _under_way: asyncio.Future[None] | None = None
    _greeting: asyncio.Task[None] | None = None

    @property
    def max_message_size(self) -> int:
        """See ``WebSocketHandler``: a longer message closes the connection (1009)."""
        return MAX_MESSAGE

    @property
    def ping_timeout(self) -> int:
        """See ``WebSocketMixin``, in milliseconds; to Tornado, which counts seconds: no ping."""
        own: int = super().ping_timeout
        return own if self.ws_connection is not None else self.ping_interval

    @guarded("read")
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the channel; ``guarded`` demands an own ``Origin`` of whoever asks for it."""
        if len(_pages(self.settings)) >= MAX_PAGES:
            raise HTTPError(503, "Too many pages are open.")
        await WebSocketHandler.get(self, *args, **kwargs)

    def check_origin(self, origin: str | None = None) -> bool:
        """Whether the upgrade is allowed: ``guarded`` has compared the origin exactly."""
        return True

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Say hello."""
        super().open(*args, **kwargs)
        self.set_nodelay(True)  # a line of a log is small and must not wait for the next
        services: Services = self.settings[SERVICES]
        self.page = Page(services, self._send, KINDS)
        _pages(self.settings).add(self)
        await self._hello(self.page)

    def send_ping(self) -> None:
        """Ping as Jupyter does, and say hello again: a page's script hears no ping.

        So a page can tell a connection that is silent from one that is dead.
        """
        super().send_ping()
        if self.page is not None and (self._greeting is None or self._greeting.done()):
            self._greeting = asyncio.ensure_future(self._hello(self.page))

    async def _hello(self, page: Page) -> None:
        with contextlib.suppress(GoneError):
            await page.send({"type": "hello", "version": version(), "api": API})

    async def on_message(self, message: str | bytes) -> None:
        """Take a message; the next one is read when this one is done."""
        if self.page is not None:
            await self.page.receive(message)

    def on_close(self) -> None:
        """End what the page had subscribed to."""
        _pages(self.settings).discard(self)
        if self.page is not None:
            self.page.close()

    async def _send(self, text: str) -> None:
        """Wait until the socket has taken everything before, then give it this, and wait again.

        A sender may be cancelled while the page is slow: what it gave is still under way.
        """
        try:
            while self._under_way is not None and not self._under_way.done():
                await asyncio.shield(self._under_way)
            self._under_way = asyncio.ensure_future(self.write_message(text))
            await asyncio.shield(self._under_way)
        except WebSocketClosedError as exc:
            raise GoneError from exc


def _pages(settings: dict[str, Any]) -> set[ChannelHandler]:
    pages: set[ChannelHandler] = settings[PAGES]
    return pages


def close_pages(settings: dict[str, Any]) -> None:
    """Close every page's websocket: the server stops, and the pages are to come again."""
    for handler in list(_pages(settings)):
        handler.close(1001, "the server stops")
        if handler.page is not None:
            handler.page.close()


ROUTES = [(r"channel", ChannelHandler)]
