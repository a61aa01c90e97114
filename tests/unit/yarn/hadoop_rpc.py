"""A ResourceManager's scheduler port that takes a call: Hadoop's RPC with a token."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

from submarine_runtime.kerberos import Token
from submarine_runtime.protobuf import delimited, encode, fields, parts

NONCE = "bm9uY2U="


class Scheduler:
    """Answers as Hadoop does; the application is stored at the second request.

    Parameters
    ----------
    error
        Class of the exception with which calls are refused; empty: none.
    errors
        Number of the refused calls; None: all.
    """

    def __init__(
        self, token: Token, *, qop: str = "auth", error: str = "", errors: int | None = None
    ) -> None:
        self.requests: list[dict[int, Any]] = []
        self._token, self._qop, self._error, self._errors = token, qop, error, errors
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):  # The listener is closed.
            while True:
                with self._listener.accept()[0] as connection:
                    self._serve(connection.makefile("rwb"))

    def _serve(self, stream: Any) -> None:
        assert stream.read(7) == b"hrpc\x09\x00\xdf"
        for head, *messages in iter(lambda: self._read(stream), []):
            answer = self._answer(dict(fields(head)), messages)
            if answer is not None:
                stream.write(struct.pack(">I", len(answer)) + answer)
                stream.flush()

    def _read(self, stream: Any) -> list[bytes]:
        size = stream.read(4)
        if len(size) < 4:
            return []
        return list(parts(stream.read(*struct.unpack(">I", size))))

    def _answer(self, head: dict[int, Any], messages: list[bytes]) -> bytes | None:
        call = (head[3] >> 1) ^ -(head[3] & 1)
        if call == -33:
            return _response(self._sasl(dict(fields(messages[0]))))
        if call == -3:
            assert b"ApplicationMasterProtocolPB" in messages[0]
            return None
        if self._error and self._errors != 0:
            self._errors = None if self._errors is None else self._errors - 1
            return delimited(encode((2, 1), (4, self._error)))
        assert dict(fields(messages[0]))[1] == b"finishApplicationMaster"
        self.requests.append(dict(fields(messages[1])))
        return _response(encode((1, int(len(self.requests) > 1))))

    def _sasl(self, message: dict[int, Any]) -> bytes:
        if message[2] == 1:
            challenge = (
                f'realm="default",nonce="{NONCE}",qop="{self._qop}",charset=utf-8,'
                "algorithm=md5-sess"
            )
            other = encode((1, "KERBEROS"), (2, "GSSAPI"))
            token = encode((1, "TOKEN"), (2, "DIGEST-MD5"), (3, ""), (4, "default"), (5, challenge))
            return encode((2, 1), (4, other), (4, token))
        assert message[2] == 2
        return encode((2, 0 if self._is_valid(message[3].decode()) else 3))

    def _is_valid(self, response: str) -> bool:
        said = dict(re.findall(r'([a-z-]+)="?([^",]*)', response))
        user, password = (
            base64.b64encode(part).decode()
            for part in (self._token.identifier, self._token.password)
        )
        secret = hashlib.md5(f"{user}:default:{password}".encode()).digest()
        a1 = hashlib.md5(secret + f":{NONCE}:{said['cnonce']}".encode()).hexdigest()
        a2 = hashlib.md5(b"AUTHENTICATE:/default").hexdigest()
        text = f"{a1}:{NONCE}:{said['nc']}:{said['cnonce']}:auth:{a2}"
        return said["response"] == hashlib.md5(text.encode()).hexdigest()


def _response(message: bytes) -> bytes:
    return delimited(encode((1, 0), (2, 0))) + delimited(message)
