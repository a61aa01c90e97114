"""Unregister the application with the address of the job's page as text.

skein's master unregisters without a tracking URL, and YARN keeps the first one that it gets. So the
process in the master's container makes the same call shortly before it ends: one request of
Hadoop's RPC, signed by the master's token (SASL DIGEST-MD5). The job does not depend on it.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
import struct
import time
from typing import Mapping

from submarine_runtime.kerberos import Token, TokenFile
from submarine_runtime.protobuf import delimited, encode, fields, parts
from submarine_runtime.protocol import LogServer
from submarine_runtime.translation import _
from submarine_runtime.yarn.digest import DigestClient, UnsupportedError
from submarine_runtime.yarn.page_text import FILE

#: Seconds for all attempts, and for one connection; between two requests.
LIMIT, CONNECT_SECONDS, PAUSE = 6.0, 3.0, 0.1
MAX_MESSAGE = 1 << 20
_AMRM_TOKEN = "YARN_AM_RM_TOKEN"  # noqa: S105 - a kind of tokens
_PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
#: Preamble of a connection: version 9, no service class, SASL.
_PREAMBLE = b"hrpc\x09\x00\xdf"
_SUCCESS, _NEGOTIATE, _INITIATE, _WRAP = 0, 1, 2, 5
_SASL_CALL, _CONTEXT_CALL = -33, -3
_APP_SUCCEEDED, _APP_FAILED = 1, 2


class UnregistrationError(Exception):
    """The application could not be unregistered; the message is one sentence."""


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
    result = _APP_SUCCEEDED if succeeded else _APP_FAILED
    request = encode((1, detail[:1000]), (2, address), (3, result))
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
                again |= not isinstance(exc, UnsupportedError)
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
    connection.send(_CONTEXT_CALL, encode((3, _PROTOCOL)))
    head = encode((1, "finishApplicationMaster"), (2, _PROTOCOL), (3, 1))
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
        self._digest: DigestClient | None = None
        self._socket.sendall(_PREAMBLE)

    def send(self, call: int, *messages: bytes) -> None:
        """Send a request."""
        data = self._request(call, *messages)
        if self._digest is not None:
            data = self._request(_SASL_CALL, encode((2, _WRAP), (3, self._digest.wrap(data))))
        self._socket.sendall(data)

    def _request(self, call: int, *messages: bytes) -> bytes:
        client = self._client if call >= 0 else b""
        # Kind and operation of the call; its number and that of the retry are in zigzag form.
        retry = _zigzag(0 if call >= 0 else -1)
        head = encode((1, 2), (2, 0), (3, _zigzag(call)), (4, client), (5, retry))
        data = b"".join(map(delimited, (head, *messages)))
        return struct.pack(">I", len(data)) + data

    def receive(self) -> bytes:
        """Return the message of a successful response."""
        (size,) = struct.unpack(">I", self._read(4))
        if size > MAX_MESSAGE:
            raise ValueError("the response is too large")
        message = _message(self._read(size))
        if self._digest is None:
            return message
        wrapped = dict(fields(message)).get(3)
        return _message(self._digest.unwrap(wrapped if isinstance(wrapped, bytes) else b"")[4:])

    def sign_in(self, token: Token) -> None:
        """Prove the possession of a token."""
        self.send(_SASL_CALL, encode((2, _NEGOTIATE)))
        for number, value in fields(self.receive()):
            auth = dict(fields(value)) if number == 4 and isinstance(value, bytes) else {}
            if auth.get(1) == b"TOKEN" and auth.get(2) == b"DIGEST-MD5":
                break
        else:
            raise UnsupportedError("it takes no token")
        protocol, server = _plain(auth.get(3)), _plain(auth.get(4))
        user, password = (base64.b64encode(x).decode() for x in (token.identifier, token.password))
        digest = DigestClient(user, password, _plain(auth.get(5)), f"{protocol}/{server}")
        chosen = encode(*((number, _plain(auth.get(number))) for number in (1, 2, 3, 4)))
        self.send(_SASL_CALL, encode((2, _INITIATE), (3, digest.response), (4, chosen)))
        if dict(fields(self.receive())).get(2) != _SUCCESS:
            raise UnsupportedError("it refuses the token")
        self._digest = digest if digest.protects else None

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._socket.settimeout(max(self._until - time.monotonic(), 0.1))
            more = self._socket.recv(size - len(data))
            if not more:
                raise ValueError("the connection is closed")
            data += more
        return data


def _message(data: bytes) -> bytes:
    """Return the message of a response.

    Raises
    ------
    ValueError
        If the server refuses the request.
    """
    head, *rest = parts(data)
    values = dict(fields(head))
    if values.get(2):
        raise ValueError(_plain(values.get(5)) or _plain(values.get(4)))
    return rest[0] if rest else b""


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ~(value << 1)


def _plain(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
