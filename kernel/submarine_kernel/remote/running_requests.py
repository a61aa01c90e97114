"""Which cells a kernel works on now, heard on its iopub channel from this side.

When its container is lost, nobody there can say for which cells that is the end. Asks the kernel
nothing, and takes nothing but the short messages that name a request. Belongs to ``tunnel_loop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Mapping
from typing import Any

from submarine_kernel.remote.socket_directory import channel_url

#: How the kernel's own messages begin; output has other topics and stays where it is.
TOPIC = b"kernel."
#: Requests that are remembered; a kernel works on one, and one for each of its subshells.
MOST = 64
#: Messages that may wait until they are looked at, and seconds until then: each look costs time
#: that the kernel's own messages then wait for.
QUEUE, PAUSE = 10_000, 0.2
_DELIMITER = b"<IDS|MSG>"


class RunningRequests:
    """Listens as long as the kernel is owned.

    Parameters
    ----------
    connection
        Of the kernel, on this machine.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._connection = connection
        #: Parent headers as they came: few of them are ever read.
        self._headers: dict[bytes, None] = {}
        self._socket: Any = None
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen in the background."""
        import zmq

        self._socket = _context().socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = QUEUE
        self._socket.connect(channel_url(self._connection, "iopub"))
        self._socket.subscribe(TOPIC)
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    def stop(self) -> None:
        """Listen no more; what runs stays known."""
        if self._listening is not None:
            self._listening.cancel()
        if self._socket is not None:
            self._drain()
            self._socket.close()
            self._socket = None

    def all(self) -> list[dict[str, Any]]:
        """Headers of the requests that run, in their order."""
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
        import zmq

        for _ in range(QUEUE):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.ZMQError:
                return
            self._take(frames)

    def _take(self, frames: list[bytes]) -> None:
        """Note what a message says: topic, delimiter, signature, header, parent, ..., content."""
        if len(frames) < 7 or frames[1] != _DELIMITER or not frames[0].endswith(b".status"):
            return
        parent, content = frames[4], frames[6]
        if b'"idle"' in content:
            self._headers.pop(parent, None)
        elif b'"busy"' in content and len(self._headers) < MOST:
            self._headers[parent] = None


@functools.cache
def _context() -> Any:
    """One for all kernels of this process: each has a thread of its own."""
    import zmq

    return zmq.Context()
