"""Tells the clients of a kernel that is gone why: one message on its iopub port, from this side.

The port stays a while, since clients connect to it again by themselves. Nothing here is a kernel.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

#: Seconds for clients to come back and hear it.
STAYS = 5.0


class LastWords:
    """A sentence for whoever listens on iopub.

    Parameters
    ----------
    connection
        Of the kernel; its own end of the port is closed.
    """

    def __init__(self, sentence: str, connection: Mapping[str, Any]) -> None:
        self._sentence = sentence
        self._connection = dict(connection)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._say, daemon=True, name="submarine-last-words")

    def say(self) -> None:
        """Say it in the background."""
        self._thread.start()

    def end(self) -> None:
        """Give the port back; to be called where it may be needed again."""
        self._over.set()
        self._thread.join(1.0)

    def _say(self) -> None:
        import zmq

        with contextlib.suppress(zmq.ZMQError, OSError, KeyError), zmq.Context() as context:
            self._publish(context)

    def _publish(self, context: Any) -> None:
        import time

        import zmq
        from jupyter_client.session import Session

        words = self._connection
        session = Session(key=words["key"], signature_scheme=words["signature_scheme"])
        deadline = time.monotonic() + STAYS
        with context.socket(zmq.XPUB) as socket:
            socket.linger = 200
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)
            socket.bind(f"tcp://{words['ip']}:{words['iopub_port']}")
            while time.monotonic() < deadline and not self._over.is_set():
                if socket.poll(100):
                    socket.recv()
                    text = {"name": "stderr", "text": f"{self._sentence}\n"}
                    session.send(socket, "stream", content=text, ident=b"stream.stderr")
