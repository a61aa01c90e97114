from .http_messages import (
    RefusedError as RefusedError,
    Request as Request,
    response_head as response_head,
)
from .requests import LogPiece as LogPiece, PortRequests as PortRequests, Write as Write
from .server import Connection as Connection, PortServer as PortServer
from .tls_channel import TlsChannel as TlsChannel
