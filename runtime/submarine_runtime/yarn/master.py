"""Calls to skein's application master: gRPC over HTTP/2, without the packages skein and gRPC.

An agent runs on any Python of a node or an image, so the calls that need no answer are made here.
They are unary, with messages of a few hundred bytes: no flow control, and the headers of a response
are skipped. A call succeeded if the response has a message.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from contextlib import suppress
from typing import Any

from submarine_runtime.translation import _

#: Seconds that one call may take.
CALL_SECONDS = 10.0
#: Seconds between two updates of the progress; the master reports to YARN every few seconds.
PROGRESS_SECONDS = 2.0
#: skein's files in each container: the certificate of the application, and its key.
_CERTIFICATE, _KEY = ".skein.crt", ".skein.pem"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: Frames of RFC 9113: length (24 bits), type, flags, stream.
_FRAME = struct.Struct(">BHBBI")
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM = _ACK = 1
_END_HEADERS = 4
MAX_FRAME, MAX_FRAMES = 1 << 14, 100


class MasterError(Exception):
    """A call to the application master failed; the message is one sentence."""


class ApplicationMaster:
    """The application master of this container.

    Parameters
    ----------
    directory
        Working directory of the container, with skein's files.
    """

    def __init__(self, directory: str = ".") -> None:
        self._directory = directory
        host, _colon, port = os.environ["SKEIN_APPMASTER_ADDRESS"].rpartition(":")
        self.host = host.strip("[]")
        self._address = (self.host, int(port))
        self._connection: ssl.SSLSocket | None = None
        self._stream = 1
        self._progress: float | None = None
        self._progress_at = 0.0

    def add_page(self, route: str, label: str, url: str) -> None:
        """Show the page at ``url`` as ``pages/ROUTE``; the master forwards requests.

        Raises
        ------
        MasterError
            If the master does not accept it.
        """
        texts = ((1, route), (2, label), (3, url))
        self._call("AddProxy", b"".join(_text(number, text) for number, text in texts))

    def set_progress(self, value: Any) -> None:
        """Report the progress if it is a new number from 0 to 1, at most once in two seconds.

        Raises
        ------
        MasterError
            If the master does not answer.
        """
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            return
        now = time.monotonic()
        if value == self._progress or (now - self._progress_at < PROGRESS_SECONDS and value < 1):
            return
        self._progress, self._progress_at = float(value), now
        self._call("SetProgress", b"\x0d" + struct.pack("<f", value))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
        self._connection = None

    def _call(self, method: str, message: bytes) -> None:
        try:
            if self._connection is None:
                self._connection, self._stream = self._connect(), 1
            self._send_request(self._connection, method, message)
            answered = self._answer(self._connection)
        except (OSError, ValueError) as exc:
            self.close()
            raise MasterError(
                _("The application master does not answer: {error}.").format(error=exc)
            ) from exc
        self._stream += 2
        if not answered:
            raise MasterError(
                _("The application master refuses the call {method}.").format(method=method)
            )

    def _connect(self) -> ssl.SSLSocket:
        certificate = os.path.join(self._directory, _CERTIFICATE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # The only trusted certificate is the application's own; it names no host.
        context.check_hostname = False
        context.load_verify_locations(certificate)
        context.load_cert_chain(certificate, os.path.join(self._directory, _KEY))
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(self._address, CALL_SECONDS)
        try:
            connection = context.wrap_socket(plain)
            connection.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
        except BaseException:
            plain.close()
            raise
        return connection

    def _send_request(self, connection: ssl.SSLSocket, method: str, message: bytes) -> None:
        headers = {
            ":method": "POST",
            ":scheme": "https",
            ":path": f"/skein.AppMaster/{method}",
            ":authority": "skein-internal",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        # RFC 7541, 6.2.2: literals that are neither indexed nor compressed.
        block = b"".join(b"\0" + _literal(k) + _literal(v) for k, v in headers.items())
        body = struct.pack(">?I", False, len(message)) + message
        connection.settimeout(CALL_SECONDS)
        connection.sendall(
            _frame(_HEADERS, _END_HEADERS, self._stream, block)
            + _frame(_DATA, _END_STREAM, self._stream, body)
        )

    def _answer(self, connection: ssl.SSLSocket) -> bool:
        """Return whether the response has a message."""
        until, answered = time.monotonic() + CALL_SECONDS, False
        for _number in range(MAX_FRAMES):
            connection.settimeout(max(until - time.monotonic(), 0.01))
            high, low, kind, flags, stream = _FRAME.unpack(_read(connection, _FRAME.size))
            length = high << 16 | low
            if length > MAX_FRAME:
                raise ValueError("a frame is too large")
            payload = _read(connection, length)
            if kind in (_SETTINGS, _PING) and not flags & _ACK:
                answer = payload if kind == _PING else b""
                connection.sendall(_frame(kind, _ACK, 0, answer))
            elif kind == _GOAWAY:
                raise ValueError("it closes the connection")
            elif stream == self._stream:
                answered = answered or (kind == _DATA and length > 0)
                if kind == _RST_STREAM or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
                    return answered
        raise ValueError("the response is too long")


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    size = len(payload)
    return _FRAME.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def _read(connection: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ValueError("the connection is closed")
        data += more
    return data


def _literal(text: str) -> bytes:
    """Return a string of HPACK; these have fewer than 127 bytes."""
    return bytes([len(text)]) + text.encode()


def _text(number: int, text: str) -> bytes:
    """Return a string field of a protobuf message."""
    data = text.encode()
    size = len(data)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + length + data
