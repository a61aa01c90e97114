"""Client end of a tunnel through the port of a job: TLS, token, then raw bytes, with asyncio.

``submarine_runtime.protocol.tunnels`` defines the tunnels of a program; ``tunnel_ports`` provides
local ports for them.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from urllib.parse import urlencode

from submarine_jobs.access.agent_client import AgentAddress, tls_context
from submarine_runtime.network import HEAD_END, request_head, response_status
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.tunnels import PROTOCOL
from submarine_runtime.translation import _

#: Timeout of opening a tunnel, in seconds.
OPEN_SECONDS = 15.0
_MAX_HEAD = 1 << 16


class TunnelError(Exception):
    """A tunnel was not opened; ``status`` is the HTTP status, 0 without a response."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Tunnel(asyncio.Protocol):
    """One tunnel, created by ``open_tunnel``.

    Attributes
    ----------
    other
        Transport of the local connection; reading from it pauses while the job is slow.
    """

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._head = bytearray()
        self.transport: asyncio.Transport | None = None
        self.other: asyncio.ReadTransport | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport after the TLS handshake."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the program, or the HTTP response before them."""
        if self.opened.done():
            self._take(data)
            return
        self._head += data
        head, end, rest = bytes(self._head).partition(HEAD_END)
        if not end and len(head) < _MAX_HEAD:
            return
        status = response_status(head)
        if status != 101:
            self.opened.set_exception(
                TunnelError(_("the job answered {status}").format(status=status), status)
            )
            return
        self.opened.set_result(None)
        if rest:
            self._take(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the tunnel."""
        if not self.opened.done():
            self.opened.set_exception(
                TunnelError(_("the connection ended: {error}").format(error=exc or "closed"))
            )
            self.opened.exception()  # Mark it as retrieved: there may be no waiter.
        self._lost()

    def pause_writing(self) -> None:
        """Pause the local connection while the job is slow."""
        if self.other is not None:
            self.other.pause_reading()

    def resume_writing(self) -> None:
        """Resume the local connection."""
        if self.other is not None:
            self.other.resume_reading()


async def open_tunnel(
    address: AgentAddress,
    name: str,
    take: Callable[[bytes], None],
    lost: Callable[[], None],
    timeout: float = OPEN_SECONDS,
) -> Tunnel:
    """Open the tunnel with this name.

    Parameters
    ----------
    take
        Called with each chunk of data from the program.
    lost
        Called once when the tunnel ends.

    Raises
    ------
    TunnelError
        If the job cannot be reached or does not open the tunnel.
    """
    loop = asyncio.get_running_loop()
    tunnel = Tunnel(take, lost)
    try:
        async with asyncio.timeout(timeout):
            await loop.create_connection(
                lambda: tunnel, address.host, address.port, ssl=tls_context(address.secret)
            )
            assert tunnel.transport is not None
            target = f"{wire.TUNNEL}?{urlencode({'name': name})}"
            tunnel.transport.write(request_head(target, address.secret.token, PROTOCOL))
            await tunnel.opened
    except (OSError, ssl.SSLError, TimeoutError, TunnelError) as exc:
        if tunnel.transport is not None:
            tunnel.transport.abort()
        if isinstance(exc, TunnelError):
            raise
        raise TunnelError(
            _("the port of the job cannot be reached: {error}").format(error=exc)
        ) from exc
    return tunnel
