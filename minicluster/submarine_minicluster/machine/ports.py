"""Check the host name of this machine and choose free loopback ports.

Choose ports below the kernel's range for outgoing connections. An outgoing connection can take a
port of that range, such as one that `bind` to port 0 returned, before a JVM listens on it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.translation import _

_LOWEST = 10240
_CONNECT_TIMEOUT = 1.0
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def check_host_name() -> None:
    """Raise an error if this machine's host name does not resolve: Hadoop's daemons need it."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        raise MiniclusterError(
            _(
                "This machine's name {name!r} does not resolve, which Hadoop requires. Add the "
                "line '127.0.1.1 {name}' to /etc/hosts."
            ).format(name=name)
        ) from error


def accepts_connections(port: int) -> bool:
    """Whether a server listens on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True


def is_free_port(port: int) -> bool:
    """Whether a server can listen on the loopback port."""
    with socket.socket() as probe:
        # Like Hadoop's servers: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Choose a free loopback port for a server.

    Raises
    ------
    MiniclusterError
        If there is none.
    """
    return choose_ports(["server"], set())["server"]


def choose_ports(names: Iterable[str], taken: set[int]) -> dict[str, int]:
    """Choose a free port for each name, not in `taken`.

    Raises
    ------
    MiniclusterError
        If there are too few free ports.
    """
    try:
        highest = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        highest = 32768
    if highest < _LOWEST + 1000:
        highest = 60000
    candidates = random.SystemRandom().sample(range(_LOWEST, highest), 1000)
    free = (port for port in candidates if port not in taken and is_free_port(port))
    chosen: dict[str, int] = {}
    for name in names:
        port = next(free, None)
        if port is None:
            raise MiniclusterError(_("This machine has no free loopback ports for Hadoop."))
        chosen[name] = port
    return chosen
