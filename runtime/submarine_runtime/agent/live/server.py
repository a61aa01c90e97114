"""The agent's port: TLS with the job's certificate, limited threads and connections.

``answers`` handles the requests.
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Callable, Mapping

from submarine_runtime.agent.live.requests import SOCKET_SECONDS, Handler
from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.network import ConnectionLimit, Tunnels, server_context
from submarine_runtime.record import Status

#: Maximum number of concurrent requests with the token; tunnels have their own limit.
MAX_REQUESTS = 32
MAX_STREAMS = 16
#: Connections that have not shown the token: from one address, and in total. A new one replaces the
#: oldest. More than a client opens at once: some twenty tunnels when a page is reloaded.
MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_OVERALL = 32, 128
#: Seconds within which a connection must show the token.
GREETING_SECONDS = 10.0


class LiveServer(ThreadingMixIn, TCPServer):
    """The live view of one task.

    Parameters
    ----------
    secret
        ``token``, ``certificate``, ``key``.
    listen
        Address on which any free port is bound, or a socket that listens already.
    on_cancel
        Called with ``by`` and ``why``; None: cancel is not supported here.
    on_save
        Saves the model directory under a name as a version and returns it; None: not supported
        here.
    tunnels
        Tunnels to the targets that the program has declared; None: not supported here.
    on_renew
        Called when the client that started the job renews its lease.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    # More than a burst of connections: otherwise a connection waits a second for its next SYN.
    request_queue_size = 128

    def __init__(
        self,
        listen: str | socket.socket,
        secret: Mapping[str, str],
        status: Status,
        task: str,
        logs: LogFiles,
        on_cancel: Callable[[dict[str, str]], None] | None = None,
        on_save: Callable[[str], dict[str, Any]] | None = None,
        tunnels: Tunnels | None = None,
        on_renew: Callable[[], None] = lambda: None,
    ) -> None:
        if isinstance(listen, str):
            super().__init__((listen, 0), Handler)
        else:
            super().__init__(listen.getsockname(), Handler, bind_and_activate=False)
            self.socket.close()
            self.socket = listen
        self.status = status
        self.task = task
        self.logs = logs
        self.on_cancel = on_cancel
        self.on_save = on_save
        self.tunnels = tunnels
        self.on_renew = on_renew
        self.ended = threading.Event()
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        self._token = secret["token"].encode()
        self._context = server_context(secret)
        self._unauthenticated: ConnectionLimit[socket.socket] = ConnectionLimit(
            MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_OVERALL
        )
        self._authenticated: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self.socket.getsockname()[1])

    def start(self) -> None:
        """Answer in the background."""
        arguments = {"poll_interval": GREETING_SECONDS / 2}
        threading.Thread(
            target=self.serve_forever, kwargs=arguments, name="server", daemon=True
        ).start()

    def finish(self, timeout: float) -> None:
        """After the end of the job, let followers read to the end, within ``timeout``."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _ in range(MAX_STREAMS):
            if not self.streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def is_token(self, presented: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(presented.encode("utf-8", "replace"), self._token)

    def authorised(self, request: socket.socket) -> bool:
        """Record that a connection has shown the token.

        Returns
        -------
        bool
            False if there are too many concurrent requests.
        """
        with self._lock:
            self._unauthenticated.remove(request)
            if len(self._authenticated) >= MAX_REQUESTS:
                return False
            self._authenticated.add(request)
            return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection; it may replace the oldest one without a token."""
        try:
            request.settimeout(SOCKET_SECONDS)
            secure = self._context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
        except (OSError, ValueError):  # The client has closed it already.
            self.shutdown_request(request)
            return
        with self._lock:
            replaced = self._unauthenticated.add(secure, client_address[0], time.monotonic())
        for one in replaced:
            _cut(one)
        try:
            super().process_request(secure, client_address)
        except RuntimeError:  # No thread can be started.
            self._forget(secure)
            self.shutdown_request(secure)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Perform the handshake, answer one request, and forward a tunnel if requested."""
        handler = None
        try:
            request.do_handshake()
            handler = Handler(request, client_address, self)
            if handler.tunnel is None:
                request.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass  # An error of the client's connection.
        finally:
            self._forget(request)
            if handler and handler.tunnel and self.tunnels:
                self.tunnels.carry(request, handler.tunnel)
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that have not shown the token in time."""
        with self._lock:
            late = self._unauthenticated.older_than(time.monotonic() - GREETING_SECONDS)
        for request in late:
            _cut(request)

    def _forget(self, request: socket.socket) -> None:
        with self._lock:
            self._unauthenticated.remove(request)
            self._authenticated.discard(request)


def _cut(request: socket.socket) -> None:
    """End a connection that a thread reads from; that thread closes it.

    The shutdown of ssl.SSLSocket is not used: the thread would continue without TLS.
    """
    with suppress(OSError):
        socket.socket.shutdown(request, socket.SHUT_RDWR)
