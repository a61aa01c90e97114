"""The way in: TLS with the job's certificate outside, the application's loopback port inside.

Passes bytes and looks at none: who may come in is the application's own affair (its token).
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import suppress

#: Connections at once; a page of JupyterLab has about twenty.
MOST = 512
HANDSHAKE_SECONDS = 15.0
CHUNK = 1 << 16


class Door:
    """Listens in a thread of its own, until it is closed or the process ends.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, listen: str, port: int, context: ssl.SSLContext, inside: int) -> None:
        self._inside = inside
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        # Whoever knocks without TLS is no news: it would fill the job's log.
        self._loop.set_exception_handler(lambda *_: None)
        try:
            self._server = self._loop.run_until_complete(
                asyncio.start_server(
                    self._carry,
                    listen,
                    port,
                    ssl=context,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                    reuse_address=True,
                )
            )
        except BaseException:
            self._loop.close()
            raise
        self._thread = threading.Thread(target=self._loop.run_forever, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let nobody in any more, and everybody go."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # an aborted transport closes at the loop's next turns

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours = {writer}
        self._writers.add(writer)
        try:
            if len(self._writers) > 2 * MOST:
                return
            with suppress(OSError, ssl.SSLError):
                to, away = await asyncio.open_connection("127.0.0.1", self._inside)
                ours.add(away)
                self._writers.add(away)
                await asyncio.gather(_pass(reader, away), _pass(to, writer))
        finally:
            for one in ours:
                one.close()
            self._writers -= ours


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError, ssl.SSLError):
        while True:
            data = await source.read(CHUNK)
            if not data:
                break
            target.write(data)
            await target.drain()
    # Whoever has heard the end of one side has heard all there is: neither of the applications
    # goes on with a connection that is half closed.
    target.close()
