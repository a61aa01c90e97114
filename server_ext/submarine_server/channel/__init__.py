"""The websocket of a page: one connection, any number of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.channel.feed import Services as Services
    from submarine_server.channel.websocket import (
        PAGES as PAGES,
        SERVICES as SERVICES,
        close_pages as close_pages,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "feed": ("Services",),
            "websocket": ("PAGES", "SERVICES", "close_pages"),
        },
    )
