"""Which cells a kernel was asked to run and has not answered: those behind the one that runs, too.

A kernel tells of a request when it begins with it, so those that wait are seen where they pass: on
the tunnels of the shell channel. Reads the headers of what goes by; changes nothing, asks nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

#: Requests that are remembered: of more the oldest are forgotten.
MOST = 256
#: Bytes of a header that is looked at; a real one has some hundred.
LONGEST = 1 << 14
#: Bytes with which each end of a ZMTP connection begins, and where its version is in them.
_GREETING, _VERSION = 64, 10
_MORE, _LONG, _COMMAND = 1, 2, 4
_DELIMITER = b"<IDS|MSG>"
#: Frames behind the delimiter: signature, header, parent header.
_HEADER, _PARENT = 2, 3


class SentRequests:
    """The requests of all clients of one kernel; a connection has a ``Tap``."""

    def __init__(self) -> None:
        self._headers: dict[str, dict[str, Any]] = {}

    def all(self) -> list[dict[str, Any]]:
        """Headers of the requests without an answer, in the order in which they were sent."""
        return list(self._headers.values())

    def clear(self) -> None:
        """A kernel that has ended answers nothing any more."""
        self._headers.clear()

    def tap(self) -> Tap:
        """For one connection of a client."""
        return Tap(self._sent, self._answered)

    def _sent(self, header: dict[str, Any], _parent: dict[str, Any]) -> None:
        if header.get("msg_type") == "execute_request":
            self._headers[str(header.get("msg_id"))] = header
            if len(self._headers) > MOST:
                del self._headers[next(iter(self._headers))]

    def _answered(self, header: dict[str, Any], parent: dict[str, Any]) -> None:
        if header.get("msg_type") == "execute_reply":
            self._headers.pop(str(parent.get("msg_id")), None)


Hear = Callable[[dict[str, Any], dict[str, Any]], None]


class Tap:
    """Both directions of one connection.

    Parameters
    ----------
    sent
        Called with header and parent header of each message to the kernel.
    answered
        The same of each message from it.
    """

    def __init__(self, sent: Hear, answered: Hear) -> None:
        self.sent = _Reader(sent).feed
        self.received = _Reader(answered).feed


class _Reader:
    """Finds the headers in a stream of ZMTP 3; holds no more of it than one of them."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._held = bytearray()
        self._wanted = _GREETING
        self._skip = 0
        self._step: Callable[[bytes], None] = self._greeting
        self._number = 0  # of the frame; 0: the delimiter was not seen
        self._flags = 0
        self._texts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take what came next."""
        at = 0
        while at < len(data):
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
                continue
            missing = self._wanted - len(self._held)
            self._held += data[at : at + missing]
            at += missing
            if len(self._held) == self._wanted:
                whole = bytes(self._held)
                self._held.clear()
                self._step(whole)

    def _greeting(self, greeting: bytes) -> None:
        if greeting[0] == 0xFF and greeting[_VERSION] >= 3:
            self._expect(1, self._flag)
        else:  # an older ZeroMQ, or none: nothing of it is understood
            self._expect(1, self._deaf)
            self._skip = 1 << 62

    def _deaf(self, _byte: bytes) -> None: ...

    def _flag(self, flags: bytes) -> None:
        self._flags = flags[0]
        self._expect(8 if self._flags & _LONG else 1, self._length)

    def _length(self, length: bytes) -> None:
        size = int.from_bytes(length, "big")
        wanted = self._number in (0, _HEADER, _PARENT) and not self._flags & _COMMAND
        if wanted and 0 < size <= LONGEST:
            self._expect(size, self._frame)
        else:
            self._skip = size
            self._frame(b"")

    def _frame(self, content: bytes) -> None:
        self._expect(1, self._flag)
        if self._flags & _COMMAND:
            return
        if self._number or content == _DELIMITER:
            self._number += 1
        if self._number - 1 in (_HEADER, _PARENT):
            self._texts.append(content)
        if not self._flags & _MORE:
            self._end()

    def _end(self) -> None:
        """A message is complete."""
        texts, self._texts, self._number = self._texts, [], 0
        if len(texts) == 2:
            with contextlib.suppress(ValueError, RecursionError):
                header, parent = (json.loads(text or b"{}") for text in texts)
                if isinstance(header, dict) and isinstance(parent, dict):
                    self._hear(header, parent)

    def _expect(self, size: int, step: Callable[[bytes], None]) -> None:
        self._wanted, self._step = size, step
