"""The sockets: how bytes travel between Zeppelin's server and us, and nothing above that.

The one place to change when Zeppelin's wire gets authentication. Today it has none in any version:
whoever reaches the port can run code, so that it is bound to the loopback where the server is.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.transport import TBufferedTransportFactory, TServerSocket, TSocket

#: Zeppelin's own: no more than this many connections wait to be accepted.
BACKLOG = 128


class BoundSocket(TServerSocket):  # type: ignore[misc]
    """A server's socket that is bound when it is made, alone on its port.

    thriftpy2's own shares its port (SO_REUSEPORT), so that two interpreters could get the same,
    and drops connections that are idle for 3 s, which Zeppelin keeps in its pool.

    Raises
    ------
    OSError
        If no port of the range is free.
    """

    def __init__(self, host: str, ports: range) -> None:
        super().__init__(host=host, port=0, client_timeout=None, backlog=BACKLOG)
        self.sock = _bound(host, ports)
        self.port = self.sock.getsockname()[1]

    def listen(self) -> None:
        """Accept from now on; again is harmless."""
        self.sock.listen(self.backlog)


def _bound(host: str, ports: range) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in ports or (0,):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            bound.close()
            last = error
        else:
            return bound
    raise last


def is_local(host: str) -> bool:
    """Whether a host is this machine: its loopback, or an address that it has."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(addresses) and all(_is_ours(str(address)) for address in addresses)


def _is_ours(address: str) -> bool:
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def own_address(towards: str, port: int) -> str:
    """The address under which ``towards`` reaches this machine."""
    family, _, _, _, target = socket.getaddrinfo(towards, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def connected(host: str, port: int, timeout: float) -> Any:
    """A protocol over an open connection; each read and write has the time limit in seconds.

    Raises
    ------
    TTransportException
        If nobody answers there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    plain = TSocket(host, port, socket_family=family, socket_timeout=int(timeout * 1000))
    transport = TBufferedTransportFactory().get_transport(plain)
    transport.open()
    return TBinaryProtocolFactory().get_protocol(transport)
