"""A TCP proxy in this process, to cut and to refuse connections."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class TcpProxy:
    """Forward connections of this machine to a port.

    Parameters
    ----------
    port, host
        Address that connections are forwarded to.

    Attributes
    ----------
    port
        Port of the proxy. It stays the same if the proxy is closed and opened again.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._target = (host, port)
        self._ends: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Accept connections."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections and cut the existing ones."""
        if self._listener is not None:
            # The thread in accept() holds the port until it is woken.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        """Cut the existing connections."""
        for end in list(self._ends):
            _shut_down(end)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(self._target) as far:
            self._ends |= {near, far}
            self.forward(near, far)
            self._ends -= {near, far}

    def forward(self, near: socket.socket, far: socket.socket) -> None:
        """Forward the bytes of one connection in both directions until it ends."""
        back = threading.Thread(target=_copy, args=(far, near), daemon=True)
        back.start()
        _copy(near, far)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end in (source, target):
        _shut_down(end)


def _shut_down(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
