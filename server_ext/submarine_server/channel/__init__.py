"""The websocket of a page: one connection with several subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.channel.feed import ChannelServices as ChannelServices
    from submarine_server.channel.websocket import (
        ROUTES as ROUTES,
        SERVICES as SERVICES,
        attach as attach,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "feed": ("ChannelServices",),
            "websocket": (
                "ROUTES",
                "SERVICES",
                "attach",
            ),
        },
    )
