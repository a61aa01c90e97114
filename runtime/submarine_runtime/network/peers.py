"""Find the user id of the peer of a TCP connection within this machine.

Every user of the machine can connect to a port on loopback. The kernel knows the user id of each
socket, so a server can reject connections of other users before it reads a byte. It does not know
the users of other machines. sock_diag(7) answers in 0.1 ms; where it is not available, the tables
`/proc/net/tcp` and `tcp6` are read, which takes 12 ms also on a machine without connections.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from typing import Iterator, NamedTuple, Union

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
#: States of a socket in the kernel's tcp_states.h.
_ESTABLISHED, _LISTENING = 1, 10
#: Family of the sockets for sock_diag(7); None where the system has none.
_NETLINK = getattr(socket, "AF_NETLINK", None)
#: Constants of linux/netlink.h and linux/sock_diag.h.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLMSG_DONE = 4, 20, 3
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_HEADER = struct.Struct("=IHHII")
#: ``inet_diag_req_v2``: family, protocol, states, ports and addresses of the socket, no cookie.
_QUESTION = struct.Struct("=BBxxI")
_SOCKET_ID = struct.Struct(">HH16s16s")
_ANY_INTERFACE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: ``inet_diag_msg`` after the header: family and state; the socket's id; its user.
_ANSWER = struct.Struct("=BB")
_ID_AT, _UID_AT = 4, 64

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
    for row in _sockets(_ESTABLISHED, other[1], _connected(other, own)):
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
        for row in _sockets(_LISTENING, port, _listening(port))
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


def _sockets(state: int, port: int, answer: Iterator[_Row]) -> list[_Row]:
    """Return the kernel's answer, or the sockets of the tables if the kernel does not answer."""
    try:
        return list(answer)
    except OSError:
        return list(_rows(state, port))


def _connected(local: tuple[Address, int], remote: tuple[Address, int]) -> Iterator[_Row]:
    """Ask the kernel for one established connection.

    Raises
    ------
    OSError
        If there is none, or the kernel does not answer.
    """
    family = socket.AF_INET if local[0].version == 4 else socket.AF_INET6
    ends = _SOCKET_ID.pack(local[1], remote[1], local[0].packed, remote[0].packed)
    return _ask(family, _ESTABLISHED, ends, 0)


def _listening(port: int) -> Iterator[_Row]:
    """Ask the kernel for the sockets that listen at a port; raise as ``_connected`` does."""
    for family in (socket.AF_INET, socket.AF_INET6):
        yield from _ask(family, _LISTENING, _SOCKET_ID.pack(port, 0, b"", b""), _NLM_F_DUMP)


def _ask(family: int, state: int, ends: bytes, flags: int) -> Iterator[_Row]:
    """Yield the sockets of the kernel's answer that are in a state."""
    if _NETLINK is None:
        raise OSError("this system has no netlink")
    body = _QUESTION.pack(family, socket.IPPROTO_TCP, 1 << state) + ends + _ANY_INTERFACE
    head = _HEADER.pack(
        _HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST | flags, 1, 0
    )
    with socket.socket(_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(head + body)
        more = True
        while more:
            data = kernel.recv(1 << 16)
            more = bool(flags)
            while data:
                length, kind, *_ = _HEADER.unpack_from(data)
                message, data = data[_HEADER.size : length], data[(length + 3) & ~3 :]
                if kind == _NLMSG_DONE:
                    return
                if kind != _SOCK_DIAG_BY_FAMILY:
                    raise OSError("the kernel does not report the socket")
                row = _read_answer(message, state)
                if row is not None:
                    yield row


def _read_answer(message: bytes, state: int) -> _Row | None:
    family, found = _ANSWER.unpack_from(message)
    if found != state:  # The kernel returns a listening socket if nothing is connected.
        return None
    local_port, remote_port, *addresses = _SOCKET_ID.unpack_from(message, _ID_AT)
    size = 4 if family == socket.AF_INET else 16
    local, remote = (_plain(ipaddress.ip_address(data[:size])) for data in addresses)
    (uid,) = struct.unpack_from("=I", message, _UID_AT)
    return _Row((local, local_port), (remote, remote_port), uid)


def _rows(state: int, port: int) -> Iterator[_Row]:
    """Read the sockets in a state with a local port from the tables."""
    code, ending = f"{state:02X}", f":{port:04X}"
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
                if len(words) > 7 and words[3] == code and words[1].endswith(ending):
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
