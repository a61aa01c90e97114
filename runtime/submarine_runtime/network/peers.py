"""The user on the other side of a TCP connection on this machine, as the kernel knows it.

A port on loopback is open to every user of the machine. The kernel's tables of TCP sockets
(`/proc/net/tcp` and `tcp6`) have the user of each socket, so a server can refuse the others before
it reads a byte. Users on other machines are not known by this.
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
    """User id of the process at the other end of a connection within this machine.

    None when the other end is not a process of this machine, or has closed the connection.

    Raises
    ------
    UnknownPeerError
        If this system does not tell.
    """
    try:
        own, other = _end(connection.getsockname()), _end(connection.getpeername())
    except OSError:  # closed by the peer
        return None
    for row in _rows(_ESTABLISHED, other[1]):
        if (row.local, row.remote) == (other, own):
            return row.uid
    return None


def is_own(connection: socket.socket) -> bool:
    """Whether a connection within this machine is of this user, or of root, as far as is known."""
    try:
        return peer_uid(connection) in (os.geteuid(), 0)
    except UnknownPeerError:
        return True


def listener_uids(host: str, port: int) -> set[int]:
    """User ids of the processes that listen at an address of this machine.

    Raises
    ------
    UnknownPeerError
        If this system does not tell.
    """
    addresses = addresses_of(host)
    return {
        row.uid
        for row in _rows(_LISTENING, port)
        if row.local[0] in addresses or row.local[0].is_unspecified
    }


def addresses_of(host: str) -> set[Address]:
    """The addresses of a host; empty when its name is not known."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return set()
    return {_address(str(one[4][0])) for one in found}


def remote_address(connection: socket.socket) -> Address | None:
    """Address of the other end of a connection; None when it is closed."""
    try:
        return _end(connection.getpeername())[0]
    except OSError:
        return None


def _end(name: tuple[str, int]) -> tuple[Address, int]:
    return _address(name[0]), name[1]


def _address(text: str) -> Address:
    return _plain(ipaddress.ip_address(text.partition("%")[0]))


def _plain(address: Address) -> Address:
    """IPv4 in its own form: a socket for both protocols has it within an IPv6 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _rows(state: str, port: int) -> Iterator[_Row]:
    """The sockets in a state with a local port."""
    found = False
    for table in _TABLES:
        try:
            file = open(table, encoding="utf-8")  # noqa: SIM115 - closed by the next line
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
    """Decode an address in the kernel's form: words of 32 bits in the machine's byte order."""
    digits, _, port = text.partition(":")
    data = bytes.fromhex(digits)
    if sys.byteorder == "little":
        data = b"".join(data[place : place + 4][::-1] for place in range(0, len(data), 4))
    return _plain(ipaddress.ip_address(data)), int(port, 16)
