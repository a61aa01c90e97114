"""Track the execution requests without a reply, including those that wait in the kernel's queue.

A kernel reports a request when it starts to execute it. Queued requests are therefore tracked in
the tunnels of the shell channel: the headers of passing messages are read and not changed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

#: Requests that are remembered, the newest.
MAX_REQUESTS = 256
#: Maximum size of a header; a usual one has a few hundred bytes.
MAX_HEADER = 1 << 14
#: Size of the greeting of a ZMTP connection, and the offset of the version in it.
_GREETING, _VERSION = 64, 10
_MORE, _LONG, _COMMAND = 1, 2, 4
_DELIMITER = b"<IDS|MSG>"
#: Frames after the delimiter: signature, header, parent header.
_HEADER, _PARENT = 2, 3


class SentRequests:
    """The requests of all clients of one kernel. Each connection has a ``Tap``."""

    def __init__(self) -> None:
        self._headers: dict[str, dict[str, Any]] = {}

    def all(self) -> list[dict[str, Any]]:
        """Return the headers of requests without a reply, in the order in which they were sent."""
        return list(self._headers.values())

    def clear(self) -> None:
        """Forget all requests, after the kernel has ended."""
        self._headers.clear()

    def tap(self) -> Tap:
        """Create the tap of a client's connection."""
        return Tap(self._sent, self._received)

    def _sent(self, header: dict[str, Any], _parent: dict[str, Any]) -> None:
        if header.get("msg_type") == "execute_request":
            self._headers[str(header.get("msg_id"))] = header
            if len(self._headers) > MAX_REQUESTS:
                del self._headers[next(iter(self._headers))]

    def _received(self, header: dict[str, Any], parent: dict[str, Any]) -> None:
        if header.get("msg_type") == "execute_reply":
            self._headers.pop(str(parent.get("msg_id")), None)


#: Called with header and parent header of a message.
Handler = Callable[[dict[str, Any], dict[str, Any]], None]


class Tap:
    """Reads the bytes of both directions of one connection.

    Parameters
    ----------
    on_sent
        Handles the messages to the kernel.
    on_received
        Handles the messages from the kernel.
    """

    def __init__(self, on_sent: Handler, on_received: Handler) -> None:
        self.sent = _HeaderReader(on_sent).feed
        self.received = _HeaderReader(on_received).feed


class _HeaderReader:
    """Finds the headers in a stream of ZMTP 3. Its buffer holds at most one header."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._buffer = bytearray()
        self._needed = _GREETING
        self._skip = 0
        self._step: Callable[[bytes], None] = self._greeting
        self._number = 0  # Number of the frame after the delimiter; 0: before it.
        self._flags = 0
        self._texts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the stream."""
        at = 0
        while at < len(data):
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
                continue
            missing = self._needed - len(self._buffer)
            self._buffer += data[at : at + missing]
            at += missing
            if len(self._buffer) == self._needed:
                whole = bytes(self._buffer)
                self._buffer.clear()
                self._step(whole)

    def _greeting(self, greeting: bytes) -> None:
        if greeting[0] == 0xFF and greeting[_VERSION] >= 3:
            self._expect(1, self._flag)
        else:  # An older version or another protocol: ignore the stream.
            self._expect(1, self._ignore)
            self._skip = 1 << 62

    def _ignore(self, _byte: bytes) -> None: ...

    def _flag(self, flags: bytes) -> None:
        self._flags = flags[0]
        self._expect(8 if self._flags & _LONG else 1, self._length)

    def _length(self, length: bytes) -> None:
        size = int.from_bytes(length, "big")
        relevant = self._number in (0, _HEADER, _PARENT) and not self._flags & _COMMAND
        if relevant and 0 < size <= MAX_HEADER:
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
        """Handle a complete message."""
        texts, self._texts, self._number = self._texts, [], 0
        if len(texts) == 2:
            with contextlib.suppress(ValueError, RecursionError):
                header, parent = (json.loads(text or b"{}") for text in texts)
                if isinstance(header, dict) and isinstance(parent, dict):
                    self._handle(header, parent)

    def _expect(self, size: int, step: Callable[[bytes], None]) -> None:
        self._needed, self._step = size, step
