"""Reserve ports for a program: bind them without listening, and release them before its start.

``PortUse`` detects whether the program uses a port. With the setting ``port_range`` reserved ports
and the listeners of a job (``bind_port``) lie in that range.
Each port is first bound exclusively and then opened for sharing: a program that sets SO_REUSEADDR
or SO_REUSEPORT may bind it while the agent still holds it.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import time
from contextlib import suppress
from typing import Callable, Sequence

from submarine_runtime.translation import _

#: Between the well-known ports and the range for outgoing connections.
LOWEST, HIGHEST = 15_000, 32_000
_TRIES = 64
#: The lowest port that needs no privilege, and the last one.
_FIRST_PORT, _LAST_PORT = 1024, 65535
_RANGE = re.compile(r"([0-9]{1,5})-([0-9]{1,5})\Z")


class PortRangeError(OSError):
    """No port of the range is free on this node; the message is one sentence."""


def parse_port_range(text: str) -> range:
    """Return the ports of ``LOW-HIGH``, both included.

    Raises
    ------
    ValueError
        If the text is no such range.
    """
    match = _RANGE.match(text.strip())
    low, high = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if not _FIRST_PORT <= low < high <= _LAST_PORT:
        raise ValueError(
            _("must be LOW-HIGH, two ports from {first} to {last}, such as 20000-20100").format(
                first=_FIRST_PORT, last=_LAST_PORT
            )
        )
    return range(low, high + 1)


def bind_port(listen: str, port: int = 0, ports: str = "") -> socket.socket:
    """Return a socket that listens.

    No reservation of another job has the port, and a restarted process may bind it again at once.

    Parameters
    ----------
    listen
        Address of this host.
    port
        0: any free port.
    ports
        Range of the free port, ``LOW-HIGH``; empty: any.

    Raises
    ------
    PortRangeError
        If no port of the range is free.
    OSError
        If the port is in use, or none is free.
    """
    if ports and not port:
        listener = _bound(ports, listen, ("SO_REUSEADDR",))
    else:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if not ports or port:
            listener.bind((listen, port))
        # More than a burst of connections: otherwise one waits a second for its next SYN.
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


class Reservation:
    """Reserved ports of this host.

    Parameters
    ----------
    ports
        ``LOW-HIGH``: the range of the ports; empty: ``LOWEST`` to ``HIGHEST``, else any.

    Raises
    ------
    OSError
        If no port is free.
    """

    def __init__(self, count: int, ports: str = "") -> None:
        self._sockets: list[socket.socket] = []
        try:
            for _unused in range(count):
                self._sockets.append(_bound(ports))
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


#: Options that are set after a socket is bound, so that the program may bind its port too.
_SHARED = ("SO_REUSEADDR", "SO_REUSEPORT")


def _bound(ports: str = "", address: str = "", options: Sequence[str] = _SHARED) -> socket.socket:
    """Return a socket bound to a free port, in the order of chance."""
    # Not by ``random``, which each agent would load.
    if ports:
        for port in sorted(parse_port_range(ports), key=lambda _port: os.urandom(8)):
            made = _bind_if_free(port, address, options)
            if made is not None:
                return made
        raise PortRangeError(
            _("No port of port_range {ports} is free on {host}.").format(
                ports=ports, host=socket.gethostname()
            )
        )
    for _unused in range(_TRIES):
        with suppress(OSError):
            chance = int.from_bytes(os.urandom(4), "big") % (HIGHEST - LOWEST + 1)
            return _bind(LOWEST + chance, address, options)
    return _bind(0, address, options)


def _bind_if_free(port: int, address: str, options: Sequence[str]) -> socket.socket | None:
    try:
        return _bind(port, address, options)
    except OSError as exc:
        if exc.errno != errno.EADDRINUSE:
            raise
        return None


def _bind(port: int, address: str = "", options: Sequence[str] = _SHARED) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.bind((address, port))
        for option in options:
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
