"""The TLS listener of the container: the job's certificate outside, the application's port inside.

Passes bytes and looks at none: the application itself authenticates its users (by its token). So
idle connections give way to new ones, and no connection is refused: first those that have sent
nothing in TLS, which never reach the application, then those that are idle for the longest time.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from contextlib import suppress

from .connection_limit import ConnectionLimit

#: Connections that have sent nothing yet: from one address, in all, and seconds until their end.
SILENT, SILENT_OVERALL, SILENT_SECONDS = 32, 128, 15.0
#: Connections to the application: from one address and in all. A page of JupyterLab has about
#: twenty; each takes two of the 1024 files that a process usually may open.
MOST, MOST_OVERALL = 128, 256
BACKLOG = 128
CHUNK = 1 << 16
#: Seconds until the listener tries again after the process had too many files open.
PAUSE = 0.2


class Door:
    """Listens in a thread of its own, until it is closed or the process ends.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, listen: str, port: int, context: ssl.SSLContext, inside: int) -> None:
        self._context, self._inside = context, inside
        self._silent: ConnectionLimit[socket.socket] = ConnectionLimit(SILENT, SILENT_OVERALL)
        self._carried: ConnectionLimit[socket.socket] = ConnectionLimit(MOST, MOST_OVERALL)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener = socket.create_server((listen, port), backlog=BACKLOG)
        self._listener.setblocking(False)
        self._loop = asyncio.new_event_loop()
        # Peers without TLS are not logged: they would fill the job's log.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.call_soon(self._listen)
        self._thread = threading.Thread(target=self._loop.run_forever, name="door", daemon=True)
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
        await asyncio.sleep(0.05)  # an aborted transport closes at the loop's next turns

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Take a connection before its handshake, which ``asyncio.Server`` does not count."""
        try:
            connection, address = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # No more files may be open; the next one waits in the kernel's queue.
            self._loop.remove_reader(self._listener)
            self._loop.call_later(PAUSE, self._listen)
            return
        connection.setblocking(False)
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for one in self._silent.add(connection, address[0], time.monotonic()):
            _cut(one)
        task = self._loop.create_task(self._serve(connection, address[0]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket, address: str) -> None:
        """Shake hands, wait for the first bytes, and only then connect to the application."""
        writers: list[asyncio.StreamWriter] = []
        try:
            reader, data = await asyncio.wait_for(
                self._first_bytes(connection, writers), SILENT_SECONDS
            )
            if not data or not self._silent.remove(connection):
                return
            for one in self._carried.add(connection, address, time.monotonic()):
                _cut(one)
            to, away = await asyncio.open_connection("127.0.0.1", self._inside)
            self._keep(away, writers)
            away.write(data)
            await asyncio.gather(
                self._pass(reader, away, connection), self._pass(to, writers[0], connection)
            )
        except (OSError, asyncio.TimeoutError):  # noqa: UP041 - another class before 3.11
            _cut(connection)
        finally:
            self._silent.remove(connection)
            self._carried.remove(connection)
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
        self._keep(asyncio.StreamWriter(transport, protocol, reader, self._loop), writers)
        return reader, await reader.read(CHUNK)

    def _keep(self, writer: asyncio.StreamWriter, writers: list[asyncio.StreamWriter]) -> None:
        writers.append(writer)
        self._writers.add(writer)

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, outside: socket.socket
    ) -> None:
        with suppress(OSError, ssl.SSLError):
            while True:
                data = await source.read(CHUNK)
                if not data:
                    break
                self._carried.touch(outside, time.monotonic())
                target.write(data)
                await target.drain()
        # The end of one side is the end of both: neither of the applications goes on with a
        # connection that is half closed.
        target.close()


def _cut(connection: socket.socket) -> None:
    """End a connection; its transport, which has the socket, sees that and closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
