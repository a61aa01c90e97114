"""A page without a browser: the server's websocket as a test speaks it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import websocket

from tests.local.server.jupyter_server import API, TOKEN, Server
from tests.waiting import PATIENCE

Message = dict[str, Any]


class Page:
    """One connection.

    Parameters
    ----------
    port
        In place of the server's: a proxy's.
    """

    def __init__(self, server: Server, port: int | None = None, **options: Any) -> None:
        self.heard: list[Message] = []
        self.socket = connect(server, port, **options)
        try:
            assert self.next()["type"] == "hello"
        except Exception:
            self.close()
            raise

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def subscribe(self, number: int, kind: str, **words: Any) -> None:
        self.send(op="subscribe", id=number, kind=kind, **words)

    def next(self, timeout: float = PATIENCE) -> Message:
        self.socket.settimeout(timeout)
        message: Message = json.loads(self.socket.recv())
        self.heard.append(message)
        return message

    def until(self, fits: Callable[[Message], object], timeout: float = PATIENCE) -> Message:
        """The first message from now on that fits."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"it does not come; last heard: {self.heard[-3:]}"[:3000])
            message = self.next(left)
            if fits(message):
                return message

    def of(self, number: int, kind: str | None = None) -> list[Message]:
        return [m for m in self.heard if m.get("id") == number and kind in (None, m["type"])]

    def close(self) -> None:
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self.socket.close()
        self.socket.shutdown()  # what a broken connection leaves


def connect(
    server: Server,
    port: int | None = None,
    origin: str | None = "",
    token: str | None = TOKEN,
    **headers: str,
) -> websocket.WebSocket:
    """A websocket as a browser of the server's own page would open it, or as another."""
    url = f"ws://127.0.0.1:{port or server.port}{API}channel"
    here = f"http://127.0.0.1:{port or server.port}"
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        sent["Authorization"] = f"token {token}"
    return websocket.create_connection(
        url,
        timeout=30,
        header=sent,
        origin=here if origin == "" else origin,
        suppress_origin=origin is None,
    )
