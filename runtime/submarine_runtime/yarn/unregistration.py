"""Unregister the application with the address of the job's page as text.

skein's master unregisters without a tracking URL, and YARN keeps the first one that it gets. So the
process in the master's container makes the same call shortly before it ends: one request of
Hadoop's RPC, signed by the master's token (SASL DIGEST-MD5). The job does not depend on it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
import socket
import struct
import time
from typing import Iterator, Mapping

from submarine_runtime.kerberos import Token, TokenFile
from submarine_runtime.protobuf import fields, varint
from submarine_runtime.protocol import LogServer
from submarine_runtime.translation import _
from submarine_runtime.yarn.page_text import FILE

#: Seconds for all attempts, and for one connection; between two requests.
LIMIT, CONNECT_SECONDS, PAUSE = 6.0, 3.0, 0.1
MAX_MESSAGE = 1 << 20
_AMRM_TOKEN = "YARN_AM_RM_TOKEN"  # noqa: S105 - a kind of tokens
_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
#: Preamble of a connection: version 9, no service class, SASL.
_PREAMBLE = b"hrpc\x09\x00\xdf"
_SUCCESS, _NEGOTIATE, _INITIATE = 0, 1, 2
_SASL_CALL, _CONTEXT_CALL = -33, -3
_APP_SUCCEEDED, _APP_FAILED = 1, 2
_DIRECTIVE = re.compile(r'([a-z-]+)=(?:"([^"]*)"|([^,]*))')


class UnregistrationError(Exception):
    """The application could not be unregistered; the message is one sentence."""


class _RefusalError(ValueError):
    """A ResourceManager will never accept the request."""


def unregister(server: LogServer, succeeded: bool, detail: str) -> bool:
    """Unregister the application of this container, if it is the master's; return whether it is.

    Parameters
    ----------
    detail
        Why the job ended, one sentence.

    Raises
    ------
    UnregistrationError
        If no ResourceManager accepts the request.
    """
    address = text_address(server.url, os.environ)
    tokens = TokenFile().find(_AMRM_TOKEN)
    if not address or not tokens:
        return False
    request = _field(1, detail[:1000]) + _field(2, address)
    request += _field(3, _APP_SUCCEEDED if succeeded else _APP_FAILED)
    until, reason = time.monotonic() + LIMIT, ""
    # While another ResourceManager becomes active, none listens, and the active one does not know
    # the master until its next heartbeat.
    again = True
    while again:
        again = False
        for scheduler in server.schedulers:
            host, _colon, port = scheduler.rpartition(":")
            try:
                with socket.create_connection((host, int(port)), CONNECT_SECONDS) as connection:
                    _finish(_Connection(connection, until), tokens[0], request, until)
                return True
            except (OSError, ValueError, IndexError, struct.error) as exc:
                reason = str(exc)
                again |= not isinstance(exc, _RefusalError)
        again &= time.monotonic() < until
        time.sleep(PAUSE if again else 0)
    raise UnregistrationError(
        _("YARN did not take the address of the job's text: {reason}").format(reason=reason[:300])
    )


def text_address(log_server: str, environ: Mapping[str, str]) -> str:
    """Return the address of the text on the history server; empty if it cannot be known."""
    names = ("NM_HOST", "NM_PORT", "CONTAINER_ID", "USER")
    host, port, container, user = (environ.get(name, "") for name in names)
    if not (
        log_server.startswith(("http://", "https://")) and host and port and container and user
    ):
        return ""
    return f"{log_server.rstrip('/')}/{host}:{port}/{container}/{container}/{user}/{FILE}/?start=0"


def _finish(connection: _Connection, token: Token, request: bytes, until: float) -> None:
    connection.sign_in(token)
    connection.send(_CONTEXT_CALL, _field(3, _PROTOCOL))
    head = _field(1, "finishApplicationMaster") + _field(2, _PROTOCOL) + _field(3, 1)
    number = 0
    # YARN stores the end of the application first.
    while True:
        connection.send(number, head, request)
        if dict(fields(connection.receive())).get(1):
            return
        if time.monotonic() > until:
            raise ValueError("it did not store the end in time")
        time.sleep(PAUSE)
        number += 1


class _Connection:
    """A connection of Hadoop's RPC."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._socket, self._until = connection, until
        self._client = secrets.token_bytes(16)
        self._socket.sendall(_PREAMBLE)

    def send(self, call: int, *messages: bytes) -> None:
        """Send a request."""
        client = self._client if call >= 0 else b""
        # Kind and operation of the call; its number and that of the retry are in zigzag form.
        head = _field(1, 2) + _field(2, 0) + _field(3, _zigzag(call)) + _field(4, client)
        head += _field(5, _zigzag(0 if call >= 0 else -1))
        data = b"".join(_number(len(part)) + part for part in (head, *messages))
        self._socket.sendall(struct.pack(">I", len(data)) + data)

    def receive(self) -> bytes:
        """Return the message of a successful response."""
        (size,) = struct.unpack(">I", self._read(4))
        if size > MAX_MESSAGE:
            raise ValueError("the response is too large")
        head, *rest = _parts(self._read(size))
        values = dict(fields(head))
        if values.get(2):
            raise ValueError(_plain(values.get(5)) or _plain(values.get(4)))
        return rest[0] if rest else b""

    def sign_in(self, token: Token) -> None:
        """Prove the possession of a token."""
        self.send(_SASL_CALL, _field(2, _NEGOTIATE))
        for number, value in fields(self.receive()):
            auth = dict(fields(value)) if number == 4 and isinstance(value, bytes) else {}
            if auth.get(1) == b"TOKEN" and auth.get(2) == b"DIGEST-MD5":
                break
        else:
            raise _RefusalError("it takes no token")
        protocol, server = _plain(auth.get(3)), _plain(auth.get(4))
        proof = digest_response(token, _plain(auth.get(5)), f"{protocol}/{server}")
        chosen = b"".join(_field(n, _plain(auth.get(n))) for n in (1, 2, 3, 4))
        self.send(_SASL_CALL, _field(2, _INITIATE) + _field(3, proof) + _field(4, chosen))
        if dict(fields(self.receive())).get(2) != _SUCCESS:
            raise _RefusalError("it refuses the token")

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._socket.settimeout(max(self._until - time.monotonic(), 0.1))
            more = self._socket.recv(size - len(data))
            if not more:
                raise ValueError("the connection is closed")
            data += more
        return data


def digest_response(token: Token, challenge: str, uri: str, cnonce: str = "") -> str:
    """Return the response to a challenge of SASL DIGEST-MD5 (RFC 2831) without protection.

    Raises
    ------
    ValueError
        If the server requires integrity or privacy.
    """
    said = {m[1]: m[2] if m[2] is not None else m[3] for m in _DIRECTIVE.finditer(challenge)}
    if "auth" not in said.get("qop", "auth").split(","):
        raise _RefusalError("it requires protected calls")
    user, password = (base64.b64encode(x).decode() for x in (token.identifier, token.password))
    realm, nonce = said.get("realm", ""), said.get("nonce", "")
    cnonce = cnonce or secrets.token_hex(16)
    secret = _md5(f"{user}:{realm}:{password}".encode()) + f":{nonce}:{cnonce}".encode()
    a1, a2 = _md5(secret).hex(), _md5(f"AUTHENTICATE:{uri}".encode()).hex()
    response = _md5(f"{a1}:{nonce}:00000001:{cnonce}:auth:{a2}".encode()).hex()
    return (
        f'charset=utf-8,username="{user}",realm="{realm}",nonce="{nonce}",nc=00000001,'
        f'cnonce="{cnonce}",digest-uri="{uri}",maxbuf=65536,response={response},qop=auth'
    )


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324 - the protocol's


def _field(number: int, value: int | str | bytes) -> bytes:
    """Return a field of a protobuf message."""
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(data)) + data


def _number(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ~(value << 1)


def _parts(data: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(data):
        length, place = varint(data, place)
        yield data[place : place + length]
        place += length


def _plain(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
