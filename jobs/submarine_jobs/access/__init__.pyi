from .agent_client import (
    AgentAddress as AgentAddress,
    AgentClient as AgentClient,
    LogChunk as LogChunk,
    NotListeningError as NotListeningError,
    NoTokenError as NoTokenError,
    StreamBrokenError as StreamBrokenError,
    tls_context as tls_context,
)
from .credentials import JobSecret as JobSecret, create_secret as create_secret
from .job_directory import MAX_BUNDLE as MAX_BUNDLE, JobDirectory as JobDirectory
from .job_handle import JobHandle as JobHandle
from .tunnel import Tunnel as Tunnel, TunnelError as TunnelError, open_tunnel as open_tunnel
from .tunnel_ports import (
    TUNNEL_HOST as TUNNEL_HOST,
    TunnelPorts as TunnelPorts,
    tunnel_loop as tunnel_loop,
)
