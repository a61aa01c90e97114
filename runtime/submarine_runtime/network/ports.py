"""Reserve ports for a program: bind them without listening, and release them before its start.

``PortUse`` detects whether the program uses a port.
Each port is first bound exclusively and then opened for sharing: a program that sets SO_REUSEADDR
or SO_REUSEPORT may bind it while the agent still holds it.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from contextlib import suppress
from typing import Callable, Sequence

#: Between the well-known ports and the range for outgoing connections.
LOWEST, HIGHEST = 15_000, 32_000
_TRIES = 64


class Reservation:
    """Reserved ports of this host.

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
        """Whether the ports are still bound by this process."""
        return bool(self._sockets)

    def hold(self) -> None:
        """Bind the same ports again, except those that were taken in the meantime."""
        if self._sockets:
            return
        for port in self.ports:
            with suppress(OSError):  # The program reports it if it matters.
                self._sockets.append(_bind(port))

    def release(self) -> None:
        """Release the ports; may be called repeatedly."""
        while self._sockets:
            self._sockets.pop().close()


def _bound() -> socket.socket:
    """Return a socket bound to a free port."""
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
#: Seconds between two checks: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0


class PortUse:
    """Detects whether the program uses a port of its task.

    A closed connection stays in the kernel's table for a minute (TIME-WAIT), so that a check after
    the program's end also finds a rendezvous that was shorter than the time between two checks.

    Parameters
    ----------
    address
        Address of this task for the other tasks.
    served
        A helper of the agent listens at the port: only connections count.
    report
        Called once, when a use is detected.
    """

    def __init__(self, address: str, port: int, served: bool, report: Callable[[], None]) -> None:
        self._address, self._port, self._report = address, port, report
        self._states = _CONNECTED if served else _CONNECTED | {_LISTEN}
        self._began = time.monotonic()
        # A check reads the tables of all sockets: not while the programs of a gang start.
        self._next = self._began + _FIRST_PAUSE
        self.noticed = False

    def check(self, *, last: bool = False) -> None:
        """Check if it is time, or in any case for the ``last`` check."""
        now = time.monotonic()
        if self.noticed or (now < self._next and not last):
            return
        pause = (now - self._began) / 20
        self._next = now + min(max(pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        if port_states(self._address, self._port) & self._states:
            self.noticed = True
            self._report()


def port_states(address: str, port: int, tables: Sequence[str] = _TABLES) -> set[str]:
    """Return the kernel's codes for the states of all TCP sockets at a port of this machine.

    A connection that its client closes first stays in the table only as the client's: sockets with
    that remote port at ``address`` or the loopback device count as well.
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
    """Return an address in the form of the tables: four-byte words in this machine's byte order."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
