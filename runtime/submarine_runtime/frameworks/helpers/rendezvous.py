"""Horovod's rendezvous: a key-value store over HTTP, as Horovod's gloo uses it.

``rendezvous --address A --port P --ready R --sizes global=4,local_worker-0=1``. Port R opens
once it serves, so that only the programs connect to port P. ``PUT /scope/key`` stores the body.
``GET`` returns it, or 404 before it is stored (clients retry). ``DELETE`` says that one process has
finished with the scope: a scope of known size is emptied after all processes, any other loses the
key. Every client that can connect may write, because gloo cannot authenticate; the size of values
is limited.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Mapping, Sequence

from submarine_runtime.frameworks.helpers.port_wait import open_ready_port
from submarine_runtime.network import ConnectionLimit

SECONDS = 10.0
MAX_VALUE = 1 << 20
MAX_TOTAL = 256 << 20
MAX_AT_ONCE = 128
#: Seconds that a connection has to send its request while another connection waits.
IDLE_SECONDS = 1.0


class Store:
    """The scopes; every method may be called from any thread.

    Parameters
    ----------
    sizes
        Scope -> number of its processes.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._scopes: dict[str, dict[str, bytes]] = {}
        self._done: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def get(self, scope: str, key: str) -> bytes | None:
        """Return the value; None if there is none."""
        with self._lock:
            return self._scopes.get(scope, {}).get(key)

    def put(self, scope: str, key: str, value: bytes) -> bool:
        """Store a value; return False if the total size would exceed the limit."""
        with self._lock:
            held = sum(len(one) for keys in self._scopes.values() for one in keys.values())
            if held + len(value) > MAX_TOTAL:
                return False
            self._scopes.setdefault(scope, {})[key] = value
            return True

    def delete(self, scope: str, key: str) -> None:
        """Finish ``scope`` for one process; delete ``key`` in a scope of unknown size."""
        with self._lock:
            size = self._sizes.get(scope)
            if size is None:
                self._scopes.get(scope, {}).pop(key, None)
                return
            done = self._done.setdefault(scope, set())
            done.add(key)
            if len(done) >= size:
                self._scopes.pop(scope, None)
                del self._done[scope]


class _Handler(BaseHTTPRequestHandler):
    timeout = SECONDS
    server: Server

    def do_GET(self) -> None:
        place = self._place()
        if place is not None:
            value = self.server.store.get(*place)
            self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        place = self._place()
        if place is None:
            return
        length = self.headers.get("Content-Length") or ""
        if not length.isdigit() or int(length) > MAX_VALUE:
            self._answer(413)
            return
        value = self.rfile.read(int(length))
        if len(value) < int(length):
            return
        self._answer(200 if self.server.store.put(*place, value) else 507)

    def do_DELETE(self) -> None:
        place = self._place()
        if place is not None:
            self.server.store.delete(*place)
            self._answer(200)

    def _place(self) -> tuple[str, str] | None:
        parts = self.path.split("/")
        if len(parts) != 3 or not parts[1]:
            self._answer(400)
            return None
        return parts[1], parts[2]

    def _answer(self, code: int, body: bytes = b"") -> None:
        self.server.request_received(self.connection)
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: clients poll a hundred times a second."""


class Server(ThreadingHTTPServer):
    """Serve a store; at most ``MAX_AT_ONCE`` requests at a time, the others wait.

    While a request waits, connections without a complete request are closed after
    ``IDLE_SECONDS``: idle connections do not block the processes of the job.

    Parameters
    ----------
    sizes
        See ``Store``.
    """

    daemon_threads = True
    request_queue_size = 1024
    allow_reuse_address = True

    def __init__(self, address: str, port: int, sizes: Mapping[str, int]) -> None:
        self.store = Store(sizes)
        self._slots = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._idle: ConnectionLimit[socket.socket] = ConnectionLimit(MAX_AT_ONCE, MAX_AT_ONCE)
        self._lock = threading.Lock()
        super().__init__((address, port), _Handler)

    def process_request(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        """Wait for a slot, then answer in a thread."""
        while not self._slots.acquire(timeout=IDLE_SECONDS / 10):
            with self._lock:
                late = self._idle.older_than(time.monotonic() - IDLE_SECONDS)
            for one in late:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._idle.add(request, client_address[0], time.monotonic())
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        """Answer one request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.request_received(request)
            self._slots.release()

    def request_received(self, request: socket.socket) -> None:
        """Record that a connection has sent its request."""
        with self._lock:
            self._idle.remove(request)

    def handle_error(self, request, client_address) -> None:  # type: ignore[no-untyped-def]
        """Ignore errors of connections that the client has closed."""


def _sizes(text: str) -> dict[str, int]:
    pairs = (pair.rpartition("=") for pair in text.split(","))
    return {scope: int(size) for scope, _, size in pairs}


def main(arguments: Sequence[str]) -> int:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="rendezvous")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ready", type=int)
    parser.add_argument("--sizes", type=_sizes, default={}, help="scope=N,scope=N...")
    options = parser.parse_args(arguments)
    try:
        server = Server(options.address, options.port, options.sizes)
        if options.ready:
            open_ready_port(options.address, options.ready)
    except OSError as exc:
        sys.stderr.write(f"rendezvous at {options.address}:{options.port}: {exc.strerror or exc}\n")
        return 1
    print("rendezvous ready", flush=True)
    server.serve_forever()
    return 0
