"""The agent's port: status, logs, streams and tunnels of a running task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.agent.live.server import LiveServer as LiveServer
    from submarine_runtime.agent.live.views import LiveViews as LiveViews
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "server": ("LiveServer",),
            "views": ("LiveViews",),
        },
    )
