"""A TCP proxy between browser and server that behaves as bad networks do.

It cuts every connection after some seconds, or falls silent, as for a laptop that sleeps: nothing
is closed and nothing goes through. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from typing import Any

from tests.browser.lab import BASE


class UnreliableProxy:
    """A proxy before a port of the loopback, in a thread of its own.

    Parameters
    ----------
    port
        Where connections lead to.
    lifetime
        Seconds after which a connection is cut, in the middle of whatever is said; None: never.
    """

    def __init__(self, port: int, lifetime: float | None = None) -> None:
        self.lifetime = lifetime
        self.cuts = 0
        self._target = port
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._awake = self._wait(_set_event())
        self._server = self._wait(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """Where the server is found through this proxy."""
        return f"http://127.0.0.1:{self.port}{BASE}"

    def sleep(self) -> None:
        """Forward nothing and close nothing."""
        self._loop.call_soon_threadsafe(self._awake.clear)

    def wake(self, *, cut: bool = True) -> None:
        """Everything goes through again; with ``cut`` on new connections only."""
        if cut:
            self.cut()
        self._loop.call_soon_threadsafe(self._awake.set)

    def cut(self) -> None:
        """Cut all connections."""
        self._wait(self._cut_all())

    def close(self) -> None:
        """End the proxy and its connections."""
        self._loop.call_soon_threadsafe(self._awake.set)
        self._server.close()
        self._wait(self._cut_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(15)

    async def _cut_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()
            self.cuts += 1
        # Until their tasks have seen it.
        deadline = time.monotonic() + 5
        while self._open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._awake.wait()
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        pair = {writer, there}
        self._open |= pair
        ways = [
            asyncio.ensure_future(self._pass(reader, there)),
            asyncio.ensure_future(self._pass(there_reader, writer)),
        ]
        try:
            done, _ = await asyncio.wait(
                ways, timeout=self.lifetime, return_when=asyncio.FIRST_COMPLETED
            )
            self.cuts += not done
        finally:
            for way in ways:
                way.cancel()
            self._open -= pair
            for one in pair:
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._awake.wait()
                writer.write(data)
                await writer.drain()
            # What was written still goes out.
            await asyncio.sleep(0.05)


async def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
