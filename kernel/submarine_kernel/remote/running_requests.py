"""Track the requests that a kernel is executing, by its iopub channel.

After the loss of a container its kernel cannot report which cells were running. Only the short
status messages are received; nothing is sent to the kernel. Methods run in ``tunnel_loop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Mapping
from typing import Any

import zmq

from submarine_kernel.remote.socket_directory import channel_url

#: Topic prefix of the kernel's own messages. Output has other topics and is not received.
TOPIC = b"kernel."
#: Requests that are remembered: a kernel executes one, and one for each of its subshells.
MAX_REQUESTS = 64
#: Messages in ZeroMQ's queue, and seconds between two reads. Reading delays the messages to other
#: clients, so it is not done for each message.
QUEUE, PAUSE = 10_000, 0.2
_DELIMITER = b"<IDS|MSG>"


class RunningRequests:
    """Subscriber on the iopub channel of one kernel.

    Parameters
    ----------
    connection
        Connection of the kernel on this machine.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._connection = connection
        #: Undecoded parent headers: few of them are ever needed.
        self._headers: dict[bytes, None] = {}
        self._socket: Any = None
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen in the background."""
        self._socket = _context().socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = QUEUE
        self._socket.connect(channel_url(self._connection, "iopub"))
        self._socket.subscribe(TOPIC)
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    def stop(self) -> None:
        """Stop listening; ``all`` still returns the last state."""
        if self._listening is not None:
            self._listening.cancel()
        if self._socket is not None:
            self._drain()
            self._socket.close()
            self._socket = None

    def all(self) -> list[dict[str, Any]]:
        """Return the headers of the running requests, in their order."""
        found = []
        for raw in self._headers:
            with contextlib.suppress(ValueError, RecursionError):
                header = json.loads(raw)
                if isinstance(header, dict) and header.get("msg_type") == "execute_request":
                    found.append(header)
        return found

    async def _listen(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            self._drain()

    def _drain(self) -> None:
        for _ in range(QUEUE):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.ZMQError:
                return
            self._handle(frames)

    def _handle(self, frames: list[bytes]) -> None:
        """Handle a message: topic, delimiter, signature, header, parent, metadata, content."""
        if len(frames) < 7 or frames[1] != _DELIMITER or not frames[0].endswith(b".status"):
            return
        parent, content = frames[4], frames[6]
        if b'"idle"' in content:
            self._headers.pop(parent, None)
        elif b'"busy"' in content and len(self._headers) < MAX_REQUESTS:
            self._headers[parent] = None


@functools.cache
def _context() -> Any:
    """Return the context of all kernels of this process: each context has a thread."""
    return zmq.Context()
