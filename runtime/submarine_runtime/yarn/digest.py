"""The client's side of SASL DIGEST-MD5 (RFC 2831), with which Hadoop's RPC takes tokens.

After the sign-in it protects messages, where ``hadoop.rpc.protection`` requires it: ``integrity``
adds a signature, ``privacy`` also encrypts by RC4, the one of Hadoop's ciphers that needs no
library. A message of this client contains no secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import struct
from typing import Iterator

_DIRECTIVE = re.compile(r'([a-z-]+)=(?:"([^"]*)"|([^,]*))')
_AUTH, _INTEGRITY, _PRIVACY = "auth", "auth-int", "auth-conf"
_SIGNING = b"Digest session key to %b signing key magic constant"
_SEALING = b"Digest H(A1) to %b sealing key magic constant"
_DIRECTIONS = (b"client-to-server", b"server-to-client")
#: Bytes of a signature; of it, a type and the number of the message.
_SIGNATURE, _TAIL = 10, 6


class UnsupportedError(ValueError):
    """The server requires what this client does not support."""


class DigestClient:
    """Signs in, and protects messages afterwards.

    Parameters
    ----------
    user, password
        Identifier and password of a token, in Base64.
    challenge
        Text of the server.
    uri
        Protocol and name of the server.
    cnonce
        Random text of the client; empty: a new one.

    Attributes
    ----------
    response
        The answer to the challenge.
    protects
        Whether messages are wrapped after the sign-in.

    Raises
    ------
    UnsupportedError
        If the server requires another protection.
    """

    def __init__(
        self, user: str, password: str, challenge: str, uri: str, cnonce: str = ""
    ) -> None:
        said = {m[1]: m[2] if m[2] is not None else m[3] for m in _DIRECTIVE.finditer(challenge)}
        offered = said.get("qop", _AUTH).split(",")
        if "rc4" not in said.get("cipher", "").split(","):
            offered = [one for one in offered if one != _PRIVACY]
        qop = next((one for one in (_AUTH, _INTEGRITY, _PRIVACY) if one in offered), "")
        if not qop:
            raise UnsupportedError("it requires another protection of calls")
        realm, nonce = said.get("realm", ""), said.get("nonce", "")
        cnonce = cnonce or secrets.token_hex(16)
        secret = _md5(f"{user}:{realm}:{password}".encode()) + f":{nonce}:{cnonce}".encode()
        a1, tail = _md5(secret), "" if qop == _AUTH else f":{'0' * 32}"
        a2 = _md5(f"AUTHENTICATE:{uri}{tail}".encode()).hex()
        response = _md5(f"{a1.hex()}:{nonce}:00000001:{cnonce}:{qop}:{a2}".encode()).hex()
        self.response = (
            f'charset=utf-8,username="{user}",realm="{realm}",nonce="{nonce}",nc=00000001,'
            f'cnonce="{cnonce}",digest-uri="{uri}",maxbuf=65536,response={response},qop={qop}'
        ) + (",cipher=rc4" if qop == _PRIVACY else "")
        self.protects = qop != _AUTH
        self._signing = [_md5(a1 + _SIGNING % one) for one in _DIRECTIONS]
        self._sealing = [
            _rc4(_md5(a1 + _SEALING % one)) if qop == _PRIVACY else None for one in _DIRECTIONS
        ]
        self._numbers = [0, 0]

    def wrap(self, data: bytes) -> bytes:
        """Return the protected form of a message to the server."""
        tail, signature = self._signed(0, data)
        return _sealed(data + signature, self._sealing[0]) + tail

    def unwrap(self, data: bytes) -> bytes:
        """Return a message of the server.

        Raises
        ------
        ValueError
            If its signature is wrong.
        """
        plain = _sealed(data[:-_TAIL], self._sealing[1])
        message, found = plain[:-_SIGNATURE], plain[-_SIGNATURE:]
        tail, signature = self._signed(1, message)
        if not hmac.compare_digest(found + data[-_TAIL:], signature + tail):
            raise ValueError("its answer has a wrong signature")
        return message

    def _signed(self, direction: int, data: bytes) -> tuple[bytes, bytes]:
        number = struct.pack(">I", self._numbers[direction])
        self._numbers[direction] += 1
        signature = hmac.new(self._signing[direction], number + data, hashlib.md5).digest()
        return b"\x00\x01" + number, signature[:_SIGNATURE]


def _sealed(data: bytes, key: Iterator[int] | None) -> bytes:
    return data if key is None else bytes(byte ^ other for byte, other in zip(data, key))


def _rc4(key: bytes) -> Iterator[int]:
    """Yield the bytes of the key stream."""
    box, other = list(range(256)), 0
    for place in range(256):
        other = (other + box[place] + key[place % len(key)]) & 255
        box[place], box[other] = box[other], box[place]
    place = other = 0
    while True:
        place = (place + 1) & 255
        other = (other + box[place]) & 255
        box[place], box[other] = box[other], box[place]
        yield box[(box[place] + box[other]) & 255]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324 - the protocol's
