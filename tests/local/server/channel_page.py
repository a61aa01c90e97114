"""A page without a browser: the server's websocket as a test speaks it; and a proxy that cuts."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import websocket

from tests.local.server.server_rig import API, TOKEN, Server
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


class Proxy:
    """Forwards connections to a port and cuts them on demand."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        self._cut(one, other)

    def _cut(self, *sockets: socket.socket) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """Cut whatever is open."""
        self.cuts += 1
        some, self._open = self._open, []
        self._cut(*some)

    def close(self) -> None:
        self._listener.close()
        self.cut()
