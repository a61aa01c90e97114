"""Find the user id of the peer of a TCP connection within this machine.

Every user of the machine can connect to a port on loopback. The kernel's tables of TCP sockets
(`/proc/net/tcp` and `tcp6`) have the user id of each socket, so a server can reject connections of
other users before it reads a byte. The tables do not have the users of other machines.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from typing import Iterator, NamedTuple, Union

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED, _LISTENING = "01", "0A"

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class UnknownPeerError(Exception):
    """The system has no table of TCP sockets."""


class _Row(NamedTuple):
    local: tuple[Address, int]
    remote: tuple[Address, int]
    uid: int


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user id of the process at the other end of a connection within this machine.

    None if the other end is not a process of this machine, or has closed the connection.

    Raises
    ------
    UnknownPeerError
        If the system has no table of TCP sockets.
    """
    try:
        own, other = _end(connection.getsockname()), _end(connection.getpeername())
    except OSError:  # The peer has closed the connection.
        return None
    for row in _rows(_ESTABLISHED, other[1]):
        if (row.local, row.remote) == (other, own):
            return row.uid
    return None


def is_own(connection: socket.socket) -> bool:
    """Return whether the peer is of this user or root; True if the system has no socket table."""
    try:
        return peer_uid(connection) in (os.geteuid(), 0)
    except UnknownPeerError:
        return True


def listener_uids(host: str, port: int) -> set[int]:
    """Return the user ids of the processes that listen at an address of this machine.

    Raises
    ------
    UnknownPeerError
        If the system has no table of TCP sockets.
    """
    addresses = addresses_of(host)
    return {
        row.uid
        for row in _rows(_LISTENING, port)
        if row.local[0] in addresses or row.local[0].is_unspecified
    }


def addresses_of(host: str) -> set[Address]:
    """Return the addresses of a host; none if its name cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return set()
    return {_address(str(one[4][0])) for one in found}


def remote_address(connection: socket.socket) -> Address | None:
    """Return the address of the other end of a connection; None when it is closed."""
    try:
        return _end(connection.getpeername())[0]
    except OSError:
        return None


def _end(name: tuple[str, int]) -> tuple[Address, int]:
    return _address(name[0]), name[1]


def _address(text: str) -> Address:
    return _plain(ipaddress.ip_address(text.partition("%")[0]))


def _plain(address: Address) -> Address:
    """Convert an IPv4-mapped IPv6 address, which a dual-stack socket has, to IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _rows(state: str, port: int) -> Iterator[_Row]:
    """Return the sockets in a state with a local port."""
    found = False
    for table in _TABLES:
        try:
            file = open(table, encoding="utf-8")  # noqa: SIM115 - closed by the with statement
        except OSError:
            continue
        with file:
            found = True
            for line in file:
                words = line.split()
                if len(words) > 7 and words[3] == state and words[1].endswith(f":{port:04X}"):
                    yield _Row(_parse(words[1]), _parse(words[2]), int(words[7]))
    if not found:
        raise UnknownPeerError


def _parse(text: str) -> tuple[Address, int]:
    """Decode an address in the kernel's form: 32-bit words in the machine's byte order."""
    digits, _, port = text.partition(":")
    data = bytes.fromhex(digits)
    if sys.byteorder == "little":
        data = b"".join(data[place : place + 4][::-1] for place in range(0, len(data), 4))
    return _plain(ipaddress.ip_address(data)), int(port, 16)
