"""The websocket handler: access checks, limits, backpressure.

Authentication, authorization and origin are checked before the upgrade. Messages do not count as
activity: an open page does not keep an idle server alive.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.ioloop import IOLoop
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from submarine_runtime.translation import _
from submarine_server.base import guarded
from submarine_server.channel.feed import ChannelServices
from submarine_server.channel.feeds import FEEDS
from submarine_server.channel.subscriptions import ConnectionClosedError, PageSubscriptions
from submarine_server.displays import JobDisplays, MetricsDisplays, WorkflowDisplays
from submarine_server.monitor import JobMonitor, event_publisher
from submarine_server.service import JobService
from submarine_server.version import API, VERSION

#: Maximum size of a message; the largest valid one resumes the logs of a large job.
MAX_MESSAGE = 256 << 10
#: Maximum number of connections of the server.
MAX_CONNECTIONS = 500
#: Keys of the server's settings.
SERVICES, CONNECTIONS = "submarine_services", "submarine_connections"


class ChannelHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``GET channel`` with an upgrade."""

    page: PageSubscriptions | None = None
    _pending_write: asyncio.Future[None] | None = None
    _hello_task: asyncio.Task[None] | None = None

    @property
    def max_message_size(self) -> int:
        """Maximum size of a message; a longer one closes the connection (1009)."""
        return MAX_MESSAGE

    @property
    def ping_timeout(self) -> int:
        """Timeout in milliseconds; Tornado gets the interval, so that it does not ping too."""
        own: int = super().ping_timeout
        return own if self.ws_connection is not None else self.ping_interval

    @guarded("read")
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the channel; ``guarded`` requires an allowed ``Origin``."""
        if len(_connections(self.settings)) >= MAX_CONNECTIONS:
            raise HTTPError(503, _("Too many pages are open."))
        await WebSocketHandler.get(self, *args, **kwargs)

    def check_origin(self, origin: str | None = None) -> bool:
        """Return True: ``guarded`` has checked the origin."""
        return True

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Send the first message."""
        super().open(*args, **kwargs)
        self.set_nodelay(True)  # lines of a log are small
        services: ChannelServices = self.settings[SERVICES]
        self.page = PageSubscriptions(services, self._send, FEEDS)
        _connections(self.settings).add(self)
        await self._hello(self.page)

    def send_ping(self) -> None:
        """Ping, and repeat the first message, because scripts of a page cannot see pings.

        The page detects a dead connection by the missing message.
        """
        super().send_ping()
        if self.page is not None and (self._hello_task is None or self._hello_task.done()):
            self._hello_task = asyncio.ensure_future(self._hello(self.page))

    async def _hello(self, page: PageSubscriptions) -> None:
        with contextlib.suppress(ConnectionClosedError):
            await page.send({"type": "hello", "version": VERSION, "api": API})

    async def on_message(self, message: str | bytes) -> None:
        """Handle a message before the next one is read."""
        if self.page is not None:
            await self.page.receive(message)

    def on_close(self) -> None:
        """Cancel the subscriptions."""
        _connections(self.settings).discard(self)
        if self.page is not None:
            self.page.close()

    async def _send(self, text: str) -> None:
        """Wait for the previous message, then write this one and wait for it.

        A cancelled sender leaves its message in transit.
        """
        try:
            while self._pending_write is not None and not self._pending_write.done():
                await asyncio.shield(self._pending_write)
            self._pending_write = asyncio.ensure_future(self.write_message(text))
            await asyncio.shield(self._pending_write)
        except WebSocketClosedError as exc:
            raise ConnectionClosedError from exc


def _connections(settings: dict[str, Any]) -> set[ChannelHandler]:
    pages: set[ChannelHandler] = settings[CONNECTIONS]
    return pages


def close_connections(settings: dict[str, Any]) -> None:
    """Close all connections because the server stops; pages reconnect."""
    for handler in list(_connections(settings)):
        handler.close(1001, "the server stops")
        if handler.page is not None:
            handler.page.close()


def attach(settings: dict[str, Any], service: JobService) -> None:
    """Create the services of the channel; they stop with ``service``."""
    monitor = JobMonitor(service, event_publisher(settings.get("event_logger")))
    settings[SERVICES] = ChannelServices(
        service,
        monitor,
        JobDisplays(service, monitor),
        MetricsDisplays(service, monitor),
        WorkflowDisplays(service),
    )
    settings[CONNECTIONS] = set()

    async def close() -> None:
        close_connections(settings)
        await monitor.close()

    service.on_close(close)
    IOLoop.current().add_callback(monitor.start)


ROUTES = [(r"channel", ChannelHandler)]
