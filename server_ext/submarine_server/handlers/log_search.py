"""``GET jobs/ID/log/search``: hits as lines of JSON, each sent when it is found.

The last line says ``done`` and where to go on. A page that goes away ends its search. Finding is
``logs.search_run``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict

from tornado.iostream import StreamClosedError

from submarine_jobs.errors import SubmarineError
from submarine_jobs.logs import LogKey
from submarine_server.base import api_error, guarded
from submarine_server.handlers.logs import FARTHEST, LogHandler
from submarine_server.logs import (
    ERRORS,
    LONGEST,
    SECONDS,
    Done,
    Hit,
    LogReader,
    Search,
    compiled,
    lane_of,
    search,
)

LINES = "application/x-ndjson; charset=utf-8"
#: Seconds within which a page must take hits, and those that a search may wait for its turn.
TAKEN, TURN = 30.0, 60.0
MOST_HITS = 5000


class SearchHandler(LogHandler):
    """``GET jobs/ID/log/search``."""

    _stop: threading.Event | None = None

    @guarded("read")
    async def get(self, job: str) -> None:
        """Search for ``q``, or with ``preset=errors`` for what looks like an error."""
        wish = self._wish()
        reader = await self.reader(job)
        key = await self.key(reader)
        self._stop = threading.Event()
        self.set_header("Content-Type", LINES)
        try:
            done, problem = await self._search(reader, key, wish, self._stop), ""
        except (SubmarineError, TimeoutError, FileNotFoundError) as error:
            if not self._headers_written:
                raise
            # The hits so far have gone out: the last line says that there may be more.
            said = api_error(error)
            done, problem = Done(None, 0), said.error if said is not None else "It failed."
        except StreamClosedError:
            return
        finally:
            self._stop.set()
        last = {"done": True, "next": done.next, "scanned": done.scanned}
        self.write(json.dumps({**last, "error": problem} if problem else last) + "\n")
        self.finish(set_content_type=LINES)

    def on_connection_close(self) -> None:
        """The page has gone away."""
        if self._stop is not None:
            self._stop.set()
        super().on_connection_close()

    def _wish(self) -> Search:
        back = bool(self.number("backward", 0, 0, 1))
        begin = self.number("from", -1, -1, FARTHEST)
        most = self.number("limit", 200, 1, MOST_HITS)
        if self.query("preset") == "errors":
            pattern = compiled(ERRORS, regex=True, case=True)
        else:
            regex, case = (bool(self.number(name, 0, 0, 1)) for name in ("regex", "case"))
            pattern = compiled(self.query("q", most=LONGEST), regex=regex, case=case)
        return Search(pattern, None if begin < 0 else begin, back, most)

    async def _search(
        self, reader: LogReader, key: LogKey, wish: Search, stop: threading.Event
    ) -> Done:
        loop = asyncio.get_running_loop()

        def emit(hits: Sequence[Hit]) -> None:
            # Waits for the page: a slow one slows its own search down, and nothing piles up.
            sending = asyncio.run_coroutine_threadsafe(self._send(hits), loop)
            sending.result(TAKEN)

        return await lane_of(self.core).run(
            lambda: search(reader, key, wish, stop, emit), TURN + SECONDS + TAKEN
        )

    async def _send(self, hits: Sequence[Hit]) -> None:
        self.write("".join(json.dumps(asdict(hit)) + "\n" for hit in hits))
        await self.flush()


ROUTES = [(r"jobs/(?P<job>[^/]+)/log/search", SearchHandler)]
