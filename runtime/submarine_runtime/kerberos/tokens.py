"""Hadoop's delegation tokens: the token file of a container, and the form of a token in URLs.

The formats are those of ``org.apache.hadoop.security.Credentials`` (versions 0 and 1) and
``org.apache.hadoop.security.token.Token``. A token is a secret: its representation does not show
identifier and password.
"""

from __future__ import annotations

import base64
import functools
import os
import struct
import threading
from dataclasses import dataclass, field, replace
from typing import Iterator, Mapping, Sequence

from submarine_runtime.files import replace_file

#: Names the file with the tokens of a container; set by YARN.
TOKEN_FILE_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"  # noqa: S105 - a name
#: Kinds of tokens. WebHDFS issues tokens of the NameNode under another kind.
HDFS_TOKEN, RM_TOKEN = "HDFS_DELEGATION_TOKEN", "RM_DELEGATION_TOKEN"
WEBHDFS_TOKENS = frozenset({"WEBHDFS delegation", "SWEBHDFS delegation"})

#: Name of Hadoop's exception for a token that has expired, was cancelled, or is of another cluster.
INVALID_TOKEN = "InvalidToken"  # noqa: S105 - a name

_MAGIC = b"HDTS"
#: A token file of YARN has a few kilobytes.
_MAX_FILE = 4 << 20


class TokenFormatError(ValueError):
    """Bytes are not Hadoop tokens."""


@dataclass(frozen=True)
class Token:
    """A delegation token.

    Parameters
    ----------
    alias
        Key of the token in its file; the service, or a name that the application master chose.
    kind
        Such as ``HDFS_DELEGATION_TOKEN``.
    service
        Host and port, or nameservice, that accepts the token.
    """

    alias: str
    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str
    service: str

    @property
    def key(self) -> tuple[str, str]:
        """Kind and service: a reader needs one token for each."""
        return self.kind, self.service

    @property
    def url_string(self) -> str:
        """The token as parameter ``delegation`` of WebHDFS, and as header of the others."""
        parts = (self.identifier, self.password, self.kind.encode(), self.service.encode())
        return base64.urlsafe_b64encode(b"".join(map(_blob, parts))).decode().rstrip("=")

    @classmethod
    def from_url_string(cls, text: str, alias: str = "", kind: str = "") -> Token:
        """Return the token of a response.

        Parameters
        ----------
        alias, kind
            Replace those of the token, if given.

        Raises
        ------
        TokenFormatError
            If the text is not a token.
        """
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            reader = _Reader(data)
            identifier, password = reader.blob(), reader.blob()
            named, service = reader.blob().decode(), reader.blob().decode()
        except ValueError as exc:
            raise TokenFormatError("the text is not a delegation token") from exc
        return cls(alias or service, identifier, password, kind or named, service)


class _Reader:
    """Read Hadoop's variable-length numbers and byte strings."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise TokenFormatError("the tokens end too early")
        self._at += count
        return self._data[self._at - count : self._at]

    def vlong(self) -> int:
        """Read a number in the form of ``WritableUtils.writeVLong``."""
        first = struct.unpack("b", self.take(1))[0]
        if first >= -112:
            return int(first)
        negative = first < -120
        value = int.from_bytes(self.take(-(first + 120) if negative else -(first + 112)), "big")
        return ~value if negative else value

    def blob(self) -> bytes:
        return self.take(self.vlong())

    def varint(self) -> int:
        """Read a number in the form of protobuf."""
        value = shift = 0
        while shift < 64:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise TokenFormatError("a number is too long")

    def fields(self) -> Iterator[tuple[int, bytes]]:
        """Yield the length-delimited fields of a protobuf message."""
        while self._at < len(self._data):
            tag = self.varint()
            if tag & 7 != 2:
                raise TokenFormatError(f"a field has wire type {tag & 7}")
            yield tag >> 3, self.take(self.varint())


def _vint(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(raw)]) + raw


def _blob(data: bytes) -> bytes:
    return _vint(len(data)) + data


def parse_tokens(data: bytes) -> list[Token]:
    """Return the tokens of a token file of version 0 or 1.

    Raises
    ------
    TokenFormatError
        If the data is not a token file of these versions.
    """
    if data[:4] != _MAGIC:
        raise TokenFormatError("the file does not begin with HDTS")
    version, reader = data[4:5], _Reader(data[5:])
    try:
        if version == b"\0":
            return [_version_0(reader) for _number in range(reader.vlong())]
        if version == b"\1":
            message = _Reader(reader.take(reader.varint()))
            return [_version_1(pair) for number, pair in message.fields() if number == 1]
    except (UnicodeDecodeError, KeyError) as exc:
        raise TokenFormatError("a token is incomplete") from exc
    raise TokenFormatError(f"the version is {version!r}")


def _version_0(reader: _Reader) -> Token:
    alias, identifier, password, kind, service = (reader.blob() for _number in range(5))
    return Token(alias.decode(), identifier, password, kind.decode(), service.decode())


def _version_1(pair: bytes) -> Token:
    parts = dict(_Reader(pair).fields())
    token = dict(_Reader(parts[2]).fields())
    return Token(parts[1].decode(), token[1], token[2], token[3].decode(), token[4].decode())


def tokens_text(tokens: Sequence[Token]) -> str:
    """Return tokens as text for a message to a job."""
    return " ".join(token.url_string for token in tokens)


def parse_tokens_text(text: str) -> list[Token]:
    """Return the tokens of ``tokens_text``.

    Raises
    ------
    TokenFormatError
        If a word is not a token.
    """
    return [Token.from_url_string(word) for word in text.split()]


def token_bytes(tokens: Sequence[Token], secrets: bytes = b"\0") -> bytes:
    """Return a token file of version 0, which all Hadoop releases read.

    Parameters
    ----------
    secrets
        The secret keys after the tokens, in the file's format; by default none.
    """
    parts = [_MAGIC, b"\0", _vint(len(tokens))]
    for token in tokens:
        fields = (token.kind.encode(), token.service.encode())
        parts += map(_blob, (token.alias.encode(), token.identifier, token.password, *fields))
    return b"".join([*parts, secrets])


class TokenFile:
    """The token file of this container; read again when it has changed.

    A fresh token replaces the one that YARN has made. The ResourceManager renews only the latter,
    so it is kept in memory, and is used again when the fresh one has expired.

    Parameters
    ----------
    path
        The file; by default that of ``HADOOP_TOKEN_FILE_LOCATION``.
    """

    def __init__(self, path: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self.path = path or environ.get(TOKEN_FILE_VARIABLE, "")
        self._lock = threading.RLock()
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: list[Token] = []
        self._spares: dict[tuple[str, str], Token] = {}
        self._host_name = ""

    def add_host_name(self, place: str) -> None:
        """Write the token of the NameNode a second time, with the name of its host.

        Hadoop's own clients look for the IP address, hdfs-native for the name in the URL.

        Parameters
        ----------
        place
            ``host:port`` of the NameNode's RPC interface.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        with self._lock:
            self._host_name = place
            if self.tokens():
                self._write()

    def tokens(self) -> list[Token]:
        """Return the tokens; those of the last good state if the file cannot be read now."""
        with self._lock:
            try:
                status = os.stat(self.path)
                stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
                if stamp != self._stamp:
                    with open(self.path, "rb") as file:
                        found = parse_tokens(file.read(_MAX_FILE))
                    others = {one.identifier for one in found if one.service != self._host_name}
                    self._tokens = [
                        one
                        for one in found
                        if one.service != self._host_name or one.identifier not in others
                    ]
                    self._stamp = stamp
            except (OSError, TokenFormatError):
                pass
            return self._tokens

    def find(self, *kinds: str) -> list[Token]:
        """Return the tokens of these kinds, in the order of the file."""
        return [token for token in self.tokens() if token.kind in kinds]

    def replace(self, fresh: Sequence[Token]) -> None:
        """Write ``fresh`` tokens in place of those of the same kind and service, mode 0600.

        A service may have several names; if there is one token of a kind, a fresh one of this kind
        replaces it and gets its service.

        Readers in this container, such as the program, find either the old or the new file.

        Raises
        ------
        OSError
            If the file cannot be written. This process uses the fresh tokens all the same.
        """
        with self._lock:
            current = {token.key: token for token in self.tokens()}
            for token in fresh:
                same = [one for one in current.values() if one.kind == token.kind]
                old = current.get(token.key) or (same[0] if len(same) == 1 else token)
                current[old.key] = replace(token, alias=old.alias, service=old.service)
                if old.identifier != token.identifier:
                    self._spares.setdefault(old.key, old)
            self._tokens = list(current.values())
            self._write()

    def _write(self) -> None:
        names = {token.service for token in self._tokens}
        copies = [
            replace(token, alias=self._host_name, service=self._host_name)
            for token in self._tokens
            if self._host_name and self._host_name not in names and token.kind == HDFS_TOKEN
        ]
        replace_file(self.path, token_bytes([*self._tokens, *copies[:1]]), mode=0o600)

    def rejected(self, token: Token) -> bool:
        """Use the other token of the same service, after a server has rejected one.

        Returns
        -------
        bool
            Whether there is another one; a second attempt then uses it.
        """
        with self._lock:
            current = next((one for one in self.tokens() if one.key == token.key), None)
            if current is not None and current.identifier != token.identifier:
                return True  # It was replaced in the meantime.
            spare = self._spares.pop(token.key, None)
            if spare is None:
                return False
            try:
                self.replace([spare])
            except OSError:
                pass  # This process uses it all the same.
            self._spares.pop(token.key, None)  # The rejected one is not tried again.
            return True


@functools.lru_cache(maxsize=1)
def container_tokens() -> TokenFile:
    """Return the token file of this container."""
    return TokenFile()
