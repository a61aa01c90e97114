"""Which cells a kernel works on now, heard on its iopub channel from this side.

When its container is lost, nobody there can say for which cells that is the end. Asks the kernel
nothing, and takes nothing but the short messages that name a request. Belongs to ``tunnel_loop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Mapping
from typing import Any

#: How the kernel's own messages begin; output has other topics and stays where it is.
TOPIC = b"kernel."
#: Requests that are remembered; a kernel works on one, and one for each of its subshells.
MOST = 64


class RunningRequests:
    """Listens as long as the kernel is owned.

    Parameters
    ----------
    connection
        Of the kernel, on this machine.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._connection = connection
        self._headers: dict[str, dict[str, Any]] = {}
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen in the background."""
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    def stop(self) -> None:
        """Listen no more; what runs stays known."""
        if self._listening is not None:
            self._listening.cancel()

    def clear(self) -> None:
        """Nothing runs: the kernel is another."""
        self._headers.clear()

    def all(self) -> list[dict[str, Any]]:
        """Headers of the requests that run, in their order."""
        return list(self._headers.values())

    async def _listen(self) -> None:
        import zmq
        from jupyter_client.session import Session

        words = self._connection
        session = Session(
            key=words["key"],
            signature_scheme=words["signature_scheme"],
            # A message that comes twice does no harm here, and all that came would be remembered.
            digest_history_size=0,
        )
        with _context().socket(zmq.SUB) as socket:
            socket.linger = 0
            socket.rcvhwm = 1000
            socket.connect(f"tcp://{words['ip']}:{words['iopub_port']}")
            socket.subscribe(TOPIC)
            while True:
                frames = await socket.recv_multipart()
                with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                    _, parts = session.feed_identities(frames)
                    self._take(session.deserialize(parts))

    def _take(self, message: Mapping[str, Any]) -> None:
        parent = message["parent_header"]
        if message["msg_type"] != "status" or parent.get("msg_type") != "execute_request":
            return
        if message["content"]["execution_state"] == "idle":
            self._headers.pop(parent["msg_id"], None)
        elif len(self._headers) < MOST:
            self._headers[parent["msg_id"]] = dict(parent)


@functools.cache
def _context() -> Any:
    """One for all kernels of this process: each has a thread of its own."""
    import zmq.asyncio

    return zmq.asyncio.Context()
