"""The coordinator's port: status, logs and streams for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.server.agent_stream import AgentEndpoint as AgentEndpoint
    from submarine_runtime.coordinator.server.client_requests import (
        ClientRequests as ClientRequests,
    )
    from submarine_runtime.coordinator.server.link_server import (
        Connection as Connection,
        LinkServer as LinkServer,
    )
    from submarine_runtime.coordinator.server.tls_channel import client_context as client_context
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "agent_stream": ("AgentEndpoint",),
            "client_requests": ("ClientRequests",),
            "link_server": (
                "Connection",
                "LinkServer",
            ),
            "tls_channel": ("client_context",),
        },
    )
