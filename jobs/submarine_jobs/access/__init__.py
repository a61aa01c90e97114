"""Access a job through its port and its job directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.access.agent_client import (
        FIRST_ATTEMPT as FIRST_ATTEMPT,
        AgentAddress as AgentAddress,
        AgentClient as AgentClient,
        LogChunk as LogChunk,
        NotListeningError as NotListeningError,
        attempt_of as attempt_of,
        check_complete as check_complete,
        chunk_of as chunk_of,
        tls_context as tls_context,
    )
    from submarine_jobs.access.agent_stream import (
        StreamBrokenError as StreamBrokenError,
        open_stream as open_stream,
    )
    from submarine_jobs.access.credentials import create_secret as create_secret
    from submarine_jobs.access.job_directory import (
        MAX_BUNDLE as MAX_BUNDLE,
        JobDirectory as JobDirectory,
    )
    from submarine_jobs.access.job_handle import JobHandle as JobHandle
    from submarine_jobs.access.tunnel import (
        Tunnel as Tunnel,
        TunnelError as TunnelError,
        open_tunnel as open_tunnel,
    )
    from submarine_jobs.access.tunnel_ports import (
        TUNNEL_HOST as TUNNEL_HOST,
        TunnelPorts as TunnelPorts,
        tunnel_loop as tunnel_loop,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "agent_client": (
                "AgentAddress",
                "AgentClient",
                "FIRST_ATTEMPT",
                "LogChunk",
                "NotListeningError",
                "attempt_of",
                "check_complete",
                "chunk_of",
                "tls_context",
            ),
            "agent_stream": (
                "StreamBrokenError",
                "open_stream",
            ),
            "credentials": ("create_secret",),
            "job_directory": (
                "JobDirectory",
                "MAX_BUNDLE",
            ),
            "job_handle": ("JobHandle",),
            "tunnel": (
                "Tunnel",
                "TunnelError",
                "open_tunnel",
            ),
            "tunnel_ports": (
                "TUNNEL_HOST",
                "TunnelPorts",
                "tunnel_loop",
            ),
        },
    )
