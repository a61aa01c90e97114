"""The name of this machine and its free loopback ports.

Ports are taken below the kernel's range for outgoing connections. A port that was free when it was
asked from the kernel (`bind` to 0) may be taken by any outgoing connection before a JVM gets round
to it; those below that range are only taken by servers.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError

_LOWEST = 10240
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def check_host_name() -> None:
    """Raise unless this machine's own name resolves, as every Hadoop daemon demands."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None, socket.AF_INET)
    except OSError as error:
        raise MiniclusterError(
            f"This machine's name {name!r} does not resolve, and Hadoop looks itself up by it: "
            f"add the line '127.0.1.1 {name}' to /etc/hosts."
        ) from error


def is_free(port: int) -> bool:
    """Whether a server could listen on the loopback port now."""
    with socket.socket() as probe:
        # As Hadoop's own servers do: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A loopback port at which a server can be started in a moment.

    Raises
    ------
    MiniclusterError
        When the machine has none.
    """
    return choose(["server"], set())["server"]


def choose(names: Iterable[str], taken: set[int]) -> dict[str, int]:
    """Choose a free port for each name, none of them in `taken`.

    Raises
    ------
    MiniclusterError
        When the machine has too few free ports.
    """
    try:
        highest = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        highest = 32768
    if highest < _LOWEST + 1000:
        highest = 60000
    candidates = random.SystemRandom().sample(range(_LOWEST, highest), 1000)
    free = (port for port in candidates if port not in taken and is_free(port))
    chosen: dict[str, int] = {}
    for name in names:
        port = next(free, None)
        if port is None:
            raise MiniclusterError("This machine has no free loopback ports left for Hadoop.")
        chosen[name] = port
    return chosen
