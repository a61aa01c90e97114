"""TLS listener with the job's certificate in front of the application's port on loopback.

The listener forwards bytes; the application authenticates its users by its token. If there are too
many connections, it accepts a new one and closes another: of those that have sent nothing yet,
which are not connected to the application, or the one that has been idle for the longest time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from contextlib import suppress

from .connection_limit import ConnectionLimit

#: Connections that have sent nothing yet: limit per address, in total, and time limit in seconds.
SILENT, SILENT_OVERALL, SILENT_SECONDS = 32, 128, 15.0
#: Connections to the application: limit per address and in total. A page of JupyterLab uses about
#: twenty; each needs two of the 1024 files that a process can usually open.
MAX_CONNECTIONS, MAX_OVERALL = 128, 256
BACKLOG = 128
CHUNK = 1 << 16
#: Seconds until the listener accepts again after the process had too many open files.
PAUSE = 0.2


class TlsListener:
    """A listener in its own thread, until it is closed or the process ends.

    Parameters
    ----------
    listen, port
        Address and port to listen on.
    context
        TLS context with the job's certificate.
    app_port
        Port of the application on loopback.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, listen: str, port: int, context: ssl.SSLContext, app_port: int) -> None:
        self._context, self._app_port = context, app_port
        self._silent: ConnectionLimit[socket.socket] = ConnectionLimit(SILENT, SILENT_OVERALL)
        self._forwarded: ConnectionLimit[socket.socket] = ConnectionLimit(
            MAX_CONNECTIONS, MAX_OVERALL
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener = socket.create_server((listen, port), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._loop = asyncio.new_event_loop()
        # Peers without TLS are not logged: they would fill the job's log.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.call_soon(self._listen)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="tls-listener", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close the port and every connection."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # An aborted transport is closed in the next iterations.

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accept a connection. ``asyncio.Server`` cannot limit connections before the handshake."""
        try:
            connection, address = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # Too many open files; the connection stays in the system's queue.
            self._loop.remove_reader(self._listener)
            self._loop.call_later(PAUSE, self._listen)
            return
        connection.setblocking(False)
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for excess in self._silent.add(connection, address[0], time.monotonic()):
            _shut_down(excess)
        task = self._loop.create_task(self._serve(connection, address[0]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket, address: str) -> None:
        """Wait for the handshake and the first bytes, then connect to the application."""
        writers: list[asyncio.StreamWriter] = []
        try:
            reader, data = await asyncio.wait_for(
                self._first_bytes(connection, writers), SILENT_SECONDS
            )
            if not data or not self._silent.remove(connection):
                return
            for excess in self._forwarded.add(connection, address, time.monotonic()):
                _shut_down(excess)
            app_reader, app_writer = await asyncio.open_connection("127.0.0.1", self._app_port)
            self._register(app_writer, writers)
            app_writer.write(data)
            await asyncio.gather(
                self._forward(reader, app_writer, connection),
                self._forward(app_reader, writers[0], connection),
            )
        except (OSError, asyncio.TimeoutError):  # noqa: UP041 - another class before 3.11
            _shut_down(connection)
        finally:
            self._silent.remove(connection)
            self._forwarded.remove(connection)
            self._writers.difference_update(writers)
            for writer in writers:
                writer.close()

    async def _first_bytes(
        self, connection: socket.socket, writers: list[asyncio.StreamWriter]
    ) -> tuple[asyncio.StreamReader, bytes]:
        reader = asyncio.StreamReader()
        transport, protocol = await self._loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(reader), connection, ssl=self._context
        )
        self._register(asyncio.StreamWriter(transport, protocol, reader, self._loop), writers)
        return reader, await reader.read(CHUNK)

    def _register(self, writer: asyncio.StreamWriter, writers: list[asyncio.StreamWriter]) -> None:
        writers.append(writer)
        self._writers.add(writer)

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, client: socket.socket
    ) -> None:
        with suppress(OSError, ssl.SSLError):
            while True:
                data = await source.read(CHUNK)
                if not data:
                    break
                self._forwarded.touch(client, time.monotonic())
                target.write(data)
                await target.drain()
        # Neither application uses half-closed connections: close both directions.
        target.close()


def _shut_down(connection: socket.socket) -> None:
    """Shut a connection down; its transport, which owns the socket, then closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
