"""Ports that a task keeps for its program: bound, never listened on, given up just in time.

``PortUse`` finds out whether the program used one.
Each is first bound for ourselves alone, so that nobody else has it, and then opened for sharing:
a program that sets SO_REUSEADDR or SO_REUSEPORT may bind it while we still hold it.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from contextlib import suppress
from typing import Callable, Sequence

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


#: Files that list the TCP sockets of this network namespace, and the most bytes read of each.
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_TABLE_LIMIT = 64 << 20
_LISTEN = "0A"
#: Established, FIN-WAIT-1 and -2, TIME-WAIT, CLOSE-WAIT, LAST-ACK, CLOSING.
_CONNECTED = frozenset({"01", "04", "05", "06", "08", "09", "0B"})
#: Seconds between two looks: at first, and at most.
_FIRST_LOOK, _LAST_LOOK = 0.5, 5.0


class PortUse:
    """Notice whether the program uses a port of its task.

    A closed connection stays in the kernel's table for a minute (TIME-WAIT), so that a look after
    the program's end also finds a rendezvous that was shorter than the time between two looks.

    Parameters
    ----------
    address
        Of this task, as the others reach it.
    served
        The agent's helper listens at the port: only connections are a use by the program.
    tell
        Called once, when a use is noticed.
    """

    def __init__(self, address: str, port: int, served: bool, tell: Callable[[], None]) -> None:
        self._address, self._port, self._tell = address, port, tell
        self._states = _CONNECTED if served else _CONNECTED | {_LISTEN}
        self._began = time.monotonic()
        self._next = 0.0
        self.noticed = False

    def look(self, *, last: bool = False) -> None:
        """Look if it is time, or in any case if it is the ``last`` look."""
        now = time.monotonic()
        if self.noticed or (now < self._next and not last):
            return
        pause = (now - self._began) / 20
        self._next = now + min(max(pause, _FIRST_LOOK), _LAST_LOOK)
        if port_states(self._address, self._port) & self._states:
            self.noticed = True
            self._tell()


def port_states(address: str, port: int, tables: Sequence[str] = _TABLES) -> set[str]:
    """The kernel's words for the states of all TCP sockets at a port of this machine.

    A connection whose client closes first stays in the table as the client's only: the sockets
    that have the port of ``address`` or of the loopback device as the remote one count as well.
    """
    ending = f":{port:04X}"
    remotes = tuple(f"{_hexadecimal(one)}{ending}" for one in (address, "127.0.0.1", "::1"))
    found = set()
    for table in tables:
        with suppress(OSError), open(table, encoding="ascii", errors="replace") as file:
            for line in file.read(_TABLE_LIMIT).splitlines()[1:]:
                fields = line.split(None, 4)
                if len(fields) > 3 and (fields[1].endswith(ending) or fields[2].endswith(remotes)):
                    found.add(fields[3])
    return found


def _hexadecimal(address: str) -> str:
    """An address as the tables have it: words of four bytes in this machine's order."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
