"""Client of Hadoop RPC version 9 for simulations: simple authentication, or a token (DIGEST-MD5).

Quality of protection is ``authentication``: nothing is encrypted.
"""

from __future__ import annotations

import base64
import secrets
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from submarine_runtime.protobuf import delimited, encode, fields, parts
from submarine_runtime.yarn import DigestClient

#: Numbers of the messages before the first call.
_SASL, _CONTEXT = -33, -3
_NO_AUTHENTICATION, _SASL_AUTHENTICATION = 0, 0xDF
_SUCCESS, _NEGOTIATE, _INITIATE = 0, 1, 2
_TIMEOUT = 120.0


class RpcError(Exception):
    """The server reports an exception."""


@dataclass(frozen=True)
class Token:
    """A delegation token, as the server wrote it."""

    identifier: bytes
    password: bytes

    @classmethod
    def parse(cls, message: bytes) -> Token:
        """Parse a ``TokenProto``."""
        found = dict(fields(message))
        return cls(as_bytes(found[1]), as_bytes(found[2]))


class RpcConnection:
    """A connection to one protocol of a server; not for several threads.

    Parameters
    ----------
    address
        Host and port.
    protocol
        Name of the protocol's Java interface.
    user
        Name that is sent with simple authentication.
    token
        Authenticates the connection, in place of the user.
    """

    def __init__(
        self, address: tuple[str, int], protocol: str, user: str = "", token: Token | None = None
    ) -> None:
        self._protocol, self._client_id = protocol, secrets.token_bytes(16)
        self._number = 0
        self._socket = socket.create_connection(address, timeout=_TIMEOUT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._input = self._socket.makefile("rb")
        kind = _SASL_AUTHENTICATION if token else _NO_AUTHENTICATION
        self._socket.sendall(b"hrpc" + bytes((9, 0, kind)))
        if token is not None:
            self._sign_in(token)
        context = encode((3, protocol)) if token else encode((2, encode((1, user))), (3, protocol))
        self._socket.sendall(self._frame(_CONTEXT, context))

    def close(self) -> None:
        """Close the connection."""
        self._input.close()
        self._socket.close()

    def call(self, method: str, request: bytes = b"") -> bytes:
        """Call a method and return its response.

        Raises
        ------
        RpcError
            If the server reports an exception.
        """
        return self.call_all(method, [request])[0]

    def call_all(self, method: str, requests: Iterable[bytes]) -> list[bytes]:
        """Send all requests at once and return their responses in the same order.

        Raises
        ------
        RpcError
            As ``call``.
        """
        header = encode((1, method), (2, self._protocol), (3, 1))
        first, frames = self._number, []
        for request in requests:
            frames.append(self._frame(self._number, header, request))
            self._number += 1
        self._socket.sendall(b"".join(frames))
        found = dict(self._receive() for _ in frames)
        return [found[number] for number in range(first, self._number)]

    def _frame(self, number: int, *messages: bytes) -> bytes:
        signed = abs(number) * 2 - (number < 0)  # A protobuf sint32; the server answers a uint32.
        header = encode((1, 2), (2, 0), (3, signed), (4, self._client_id), (5, 1))
        body = b"".join(map(delimited, (header, *messages)))
        return struct.pack(">I", len(body)) + body

    def _receive(self) -> tuple[int, bytes]:
        """Return number and body of the next response."""
        (size,) = struct.unpack(">I", self._read(4))
        head, *rest = parts(self._read(size))
        header = dict(fields(head))
        if header.get(2):
            raise RpcError(f"{as_text(header.get(4))}: {as_text(header.get(5))[:1000]}")
        return as_int(header[1]), rest[0] if rest else b""

    def _read(self, size: int) -> bytes:
        data = self._input.read(size)
        if len(data) < size:
            raise RpcError("the server has closed the connection")
        return data

    def _sign_in(self, token: Token) -> None:
        self._socket.sendall(self._frame(_SASL, encode((2, _NEGOTIATE))))
        for number, value in fields(self._receive()[1]):
            method = dict(fields(as_bytes(value))) if number == 4 else {}
            if as_text(method.get(1)) == "TOKEN":
                break
        else:
            raise RpcError("the server accepts no token")
        place = f"{as_text(method.get(3))}/{as_text(method.get(4))}"
        user, password = (base64.b64encode(x).decode() for x in (token.identifier, token.password))
        proof = DigestClient(user, password, as_text(method[5]), place).response
        chosen = encode(*((n, as_text(method[n])) for n in (1, 2, 3, 4) if n in method))
        answer = encode((2, _INITIATE), (3, proof), (4, chosen))
        self._socket.sendall(self._frame(_SASL, answer))
        if dict(fields(self._receive()[1])).get(2) != _SUCCESS:
            raise RpcError("the server does not accept the token")


def messages_in(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the messages of a repeated field."""
    for found, value in fields(message):
        if found == number:
            yield as_bytes(value)


def as_bytes(value: int | bytes | None) -> bytes:
    """Return a value that must be bytes."""
    if not isinstance(value, bytes):
        raise RpcError(f"{value!r} is not bytes")
    return value


def as_int(value: int | bytes | None) -> int:
    """Return a value that must be a number."""
    if not isinstance(value, int):
        raise RpcError(f"{value!r} is not a number")
    return value


def as_text(value: int | bytes | None) -> str:
    """Return a value as text; empty for None."""
    return "" if value is None else as_bytes(value).decode("utf-8", "replace")
