"""Ports that a task keeps for its program: bound, never listened on, given up just in time.

Each is first bound for ourselves alone, so that nobody else has it, and then opened for sharing:
a program that sets SO_REUSEADDR or SO_REUSEPORT may bind it while we still hold it.
"""

from __future__ import annotations

import random
import socket
from contextlib import suppress

#: Below the range from which systems take ports for outgoing connections, above the well-known.
LOWEST, HIGHEST = 15_000, 32_000
_TRIES = 64


class Reservation:
    """Some ports of this host.

    Raises
    ------
    OSError
        If no port is free.
    """

    def __init__(self, count: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                self._sockets.append(_bound())
        except BaseException:
            self.release()
            raise
        self.ports = tuple(int(one.getsockname()[1]) for one in self._sockets)

    @property
    def held(self) -> bool:
        """Whether the ports are still bound by us."""
        return bool(self._sockets)

    def hold(self) -> None:
        """Bind the same ports again; those that somebody has taken meanwhile stay theirs."""
        if self._sockets:
            return
        for port in self.ports:
            with suppress(OSError):  # the program will say so, if it matters
                self._sockets.append(_bind(port))

    def release(self) -> None:
        """Let go; no matter how often."""
        while self._sockets:
            self._sockets.pop().close()


def _bound() -> socket.socket:
    """A socket with a port of its own."""
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        with suppress(OSError):
            return _bind(chance.randint(LOWEST, HIGHEST))
    return _bind(0)


def _bind(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.bind(("", port))
        for option in ("SO_REUSEADDR", "SO_REUSEPORT"):
            if hasattr(socket, option):
                made.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
    except BaseException:
        made.close()
        raise
    return made
