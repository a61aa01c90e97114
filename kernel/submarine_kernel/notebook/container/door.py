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
    """Listens in a thread of its own, until the process ends.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(self, listen: str, port: int, context: ssl.SSLContext, inside: int) -> None:
        self._inside = inside
        self._open = 0
        self._loop = asyncio.new_event_loop()
        server = asyncio.start_server(
            self._carry,
            listen,
            port,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            reuse_address=True,
        )
        self._server = self._loop.run_until_complete(server)
        threading.Thread(target=self._loop.run_forever, name="door", daemon=True).start()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MOST:
                return
            with suppress(OSError, ssl.SSLError):
                to, away = await asyncio.open_connection("127.0.0.1", self._inside)
                try:
                    await asyncio.gather(_pass(reader, away), _pass(to, writer))
                finally:
                    away.close()
        finally:
            self._open -= 1
            writer.close()


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
