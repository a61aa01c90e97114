"""Sockets and message limits of the connections with Zeppelin's server.

Zeppelin's protocol has no authentication in any version. If the server is on this machine, the port
is bound to loopback; ``access`` rejects other users.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, BinaryIO

from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.transport import TBufferedTransportFactory, TServerSocket, TSocket

#: Maximum number of connections that wait to be accepted, as in Zeppelin.
BACKLOG = 128
#: Maximum size of a call in bytes. Zeppelin limits messages from browsers to 10 MB.
MAX_CALL = 32 << 20
#: Maximum number of fields and elements in a call, and of nesting levels.
MAX_ELEMENTS, MAX_DEPTH = 100_000, 16
MAX_METHOD = 200
_CHUNK = 1 << 20
_VERSION, _VERSION_MASK = 0x80010000, 0xFFFF0000
#: Size of each fixed-size type in bytes: bool, byte, double, i16, i32, i64.
_SIZES = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_STOP, _STRING, _STRUCT, _MAP, _SET, _LIST = 0, 11, 12, 13, 14, 15
_TYPES = frozenset({*_SIZES, _STRING, _STRUCT, _MAP, _SET, _LIST})


class BoundSocket(TServerSocket):  # type: ignore[misc]
    """Server socket that is bound on creation and does not share its port.

    The class of thriftpy2 sets SO_REUSEPORT, so that two interpreters could get the same port, and
    closes connections after 3 s without data, which Zeppelin keeps in its pool.

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
        """Start accepting connections. May be called again."""
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


class MalformedCallError(Exception):
    """The bytes of a call are not a thrift message or exceed a limit."""


def read_call(stream: BinaryIO) -> bytes | None:
    """Read the bytes of one call without decoding it; return None at the end of the connection.

    thriftpy2's decoder does not check sizes in a message: it allocates the stated length of a
    string, and loops over elements without data while it holds the interpreter lock.

    Raises
    ------
    MalformedCallError
        If the bytes are not a call in the strict binary protocol, or exceed the limits above.
    """
    call = _CallReader(stream)
    head = stream.read(4)
    if len(head) < 4:
        return None
    call.data += head
    if int.from_bytes(head, "big") & _VERSION_MASK != _VERSION:
        raise MalformedCallError("the call does not begin with the protocol version")
    length = call.size()
    if length > MAX_METHOD:
        raise MalformedCallError(f"the method name has {length:,} bytes")
    call.take(length)
    call.take(4)
    call.skip(_STRUCT, MAX_DEPTH)
    return bytes(call.data)


class _CallReader:
    """Reads a call and keeps its bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._elements = 0
        self.data = bytearray()

    def take(self, count: int) -> bytes:
        """Read bytes."""
        if len(self.data) + count > MAX_CALL:
            raise MalformedCallError(f"the call has more than {MAX_CALL:,} bytes")
        begin = len(self.data)
        while len(self.data) < begin + count:
            piece = self._stream.read(min(_CHUNK, begin + count - len(self.data)))
            if not piece:
                raise MalformedCallError("the connection ended within a call")
            self.data += piece
        return bytes(self.data[begin : begin + min(count, 4)])

    def size(self) -> int:
        """Read a size."""
        size = int.from_bytes(self.take(4), "big", signed=True)
        if size < 0:
            raise MalformedCallError("a size is negative")
        return size

    def skip(self, kind: int, depth: int) -> None:
        """Read a value of a type."""
        if kind in _SIZES:
            self.take(_SIZES[kind])
        elif kind == _STRING:
            self.take(self.size())
        elif depth <= 0:
            raise MalformedCallError(f"the call is nested deeper than {MAX_DEPTH} levels")
        elif kind == _STRUCT:
            while (field := self._type(stop=True)) != _STOP:
                self._count(1)
                self.take(2)
                self.skip(field, depth - 1)
        else:
            kinds = [self._type() for _ in range(2 if kind == _MAP else 1)]
            count = self.size()
            self._count(count)
            for _ in range(count):
                for one in kinds:
                    self.skip(one, depth - 1)

    def _type(self, *, stop: bool = False) -> int:
        kind = self.take(1)[0]
        if kind not in _TYPES and not (stop and kind == _STOP):
            raise MalformedCallError(f"{kind} is not a type of the protocol")
        return kind

    def _count(self, more: int) -> None:
        self._elements += more
        if self._elements > MAX_ELEMENTS:
            raise MalformedCallError(f"the call has more than {MAX_ELEMENTS:,} values")


def is_local(host: str) -> bool:
    """Whether a host is this machine: loopback or one of its addresses."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(addresses) and all(_is_own(str(address)) for address in addresses)


def _is_own(address: str) -> bool:
    if ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def address_towards(host: str, port: int) -> str:
    """Return the address of this machine on its route to ``host``."""
    family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def open_protocol(host: str, port: int, timeout: float) -> Any:
    """Connect and return a protocol. ``timeout`` in seconds applies to each read and write.

    Raises
    ------
    TTransportException
        If the connection fails.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    plain = TSocket(host, port, socket_family=family, socket_timeout=int(timeout * 1000))
    transport = TBufferedTransportFactory().get_transport(plain)
    transport.open()
    return TBinaryProtocolFactory().get_protocol(transport)
