"""Logs of a job: list, bytes, times, pages in order of time, download and search.

Log data is sent as plain text with content sniffing disabled. The websocket follows logs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tornado.iostream import StreamClosedError

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.logs import MAX_READ, LogReader, TimeIndex, check_log_names, log_key, part_of
from submarine_runtime.protocol import LogKey, wire
from submarine_runtime.translation import _
from submarine_server.base import (
    NDJSON,
    PLAIN_TEXT,
    Answer,
    BaseHandler,
    api_error,
    guarded,
    require_job_id,
)
from submarine_server.logs import (
    ERROR_PATTERN,
    MAX_PATTERN,
    TIME_LIMIT,
    Hit,
    PageRequest,
    SearchRequest,
    SearchResult,
    compile_pattern,
    list_logs,
    log_reader,
    newest_attempt,
    read_page,
    search_limiter,
    search_log,
)
from submarine_server.views import (
    LogPageJson,
    LogPageQueryJson,
    LogPartJson,
    LogsJson,
    LogTimesJson,
    SearchEndJson,
    SearchHitJson,
)

#: Largest offset: the largest exact integer of JavaScript.
MAX_OFFSET = (1 << 53) - 1
ATTEMPT_HEADER = "X-Submarine-Attempt"
#: Position, length and attempt of the bytes of a log.
BYTES_HEADERS = (wire.OFFSET_HEADER, wire.LENGTH_HEADER, ATTEMPT_HEADER)
#: Maximum number of offset-time pairs in a response.
MAX_MARKS = 2000


class LogHandler(BaseHandler):
    """Base of requests about one log."""

    async def reader(self, job: str) -> LogReader:
        """Return the log reader of a job."""
        return await self.service.call(log_reader, self.service, require_job_id(job))

    async def key(self, reader: LogReader) -> LogKey:
        """Return the requested log: ``task``, ``attempt`` (default: the newest), ``stream``."""
        task = self.query_text("task") or await self.service.call(lambda: reader.job.chief)
        attempt = self.query_text("attempt")
        check_log_names(task, attempt or None)
        if not attempt:
            attempt = await self.service.call(newest_attempt, reader, task)
        return log_key(task, attempt, self.query_text("stream", "stdout"))


class LogsHandler(LogHandler):
    """``GET jobs/ID/logs``."""

    @guarded("read", Answer((LogsJson,)))
    async def get(self, job: str) -> None:
        """Return all logs of the job with their lengths."""
        reader = await self.reader(job)
        self.finish_json({"logs": await self.service.call(list_logs, reader)})


class BytesHandler(LogHandler):
    """``GET jobs/ID/log``."""

    @guarded("read", Answer(content_type=PLAIN_TEXT, headers=BYTES_HEADERS))
    async def get(self, job: str) -> None:
        """Return bytes from an offset, negative from the end; with ``download=1`` the whole log."""
        reader = await self.reader(job)
        key = await self.key(reader)
        if self.query_int("download", 0, 0, 1):
            await self._download(reader, key)
            return
        offset = self.query_int("offset", 0, -MAX_OFFSET, MAX_OFFSET)
        limit = self.query_int("limit", 256 << 10, 0, MAX_READ)
        chunk, length = await self.service.call(reader.read, key, offset, limit)
        self.set_header(wire.OFFSET_HEADER, str(chunk.offset))
        self.set_header(wire.LENGTH_HEADER, str(length))
        self.set_header(ATTEMPT_HEADER, key.attempt)
        self.finish(chunk.data, set_content_type=PLAIN_TEXT)

    async def _download(self, reader: LogReader, key: LogKey) -> None:
        """Send the current log in pieces, without loading it into memory.

        The length is sent first, so that the browser detects an incomplete download.
        """
        length = await self.service.call(reader.length, key)
        name = f"{reader.job.id}-{key.task.replace(':', '-')}-{key.attempt}-{key.stream}.log"
        self.set_header("Content-Type", PLAIN_TEXT)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.set_header("Content-Length", str(length))
        done = 0
        while done < length:
            limit = min(MAX_READ, length - done)
            data = await self._piece(reader, key, done, limit)
            try:
                self.write(data)
                await self.flush()
            except StreamClosedError:
                return
            done += len(data)
        self.finish(set_content_type=PLAIN_TEXT)

    async def _piece(self, reader: LogReader, key: LogKey, offset: int, limit: int) -> bytes:
        """Return the next piece; if it is missing, close the connection or reject the request."""
        try:
            data = await self.service.call(reader.read_through, key, offset, limit)
            if data:
                return data
            raise UsageError(
                _("The log cannot be read from byte {offset} on.").format(offset=offset),
                _("Try again later."),
            )
        except (SubmarineError, TimeoutError, FileNotFoundError):
            if offset and (connection := self.request.connection) is not None:
                # The headers were sent: closing the connection is the only way to report the error.
                connection.stream.close()  # type: ignore[attr-defined]
            raise


class TimesHandler(LogHandler):
    """``GET jobs/ID/log/times``."""

    @guarded("read", Answer((LogTimesJson,)))
    async def get(self, job: str) -> None:
        """Return when the bytes of a log were written."""
        reader = await self.reader(job)
        key = await self.key(reader)
        offset = self.query_int("offset", 0, 0, MAX_OFFSET)
        limit = self.query_int("limit", MAX_OFFSET, 0, MAX_OFFSET)
        found = await self.service.call(reader.times, key)
        marks = part_of(found.marks, offset, offset + limit, MAX_MARKS)
        self.finish_json({"attempt": key.attempt, "times": marks, "exact": found.exact})


class PageHandler(LogHandler):
    """``POST jobs/ID/log/page``: the position in all logs is too long for an address."""

    @guarded("read", Answer((LogPageJson,), body=LogPageQueryJson))
    async def post(self, job: str) -> None:
        """Return bytes of several logs in order of time."""
        request = PageRequest.of(self.body())
        page = await self.service.call(read_page, await self.reader(job), request)
        logs: list[LogPartJson] = [
            {
                "offset": log.begin,
                "length": log.length,
                "at_line": log.at_line,
                "data": base64.b64encode(log.data).decode("ascii"),
            }
            for log in page.logs
        ]
        self.finish_json({"logs": logs, "order": [[b.log, b.end, b.time] for b in page.blocks]})


#: Seconds within which the page must accept hits, and that a search may wait for its turn.
SEND_TIMEOUT, WAIT_TIMEOUT = 30.0, 60.0
MAX_HITS = 5000


class SearchHandler(LogHandler):
    """``GET jobs/ID/log/search``."""

    _stop: threading.Event | None = None

    @guarded("read", Answer((SearchHitJson, SearchEndJson), content_type=NDJSON))
    async def get(self, job: str) -> None:
        """Stream the hits of ``q``, or with ``preset=errors`` lines that report errors."""
        request = self._search_request()
        reader = await self.reader(job)
        key = await self.key(reader)
        self._stop = threading.Event()
        self.set_header("Content-Type", NDJSON)
        try:
            done, problem = await self._search(reader, key, request, self._stop), ""
        except (SubmarineError, TimeoutError, FileNotFoundError) as error:
            if not self._headers_written:
                raise
            # Hits were sent: report the error in the last line.
            response = api_error(error)
            done, problem = (
                SearchResult(None, 0),
                response.error if response is not None else _("It failed."),
            )
        except StreamClosedError:
            return
        finally:
            self._stop.set()
        last: SearchEndJson = {"done": True, "next": done.next, "scanned": done.scanned}
        if problem:
            last["error"] = problem
        self.write(json.dumps(last) + "\n")
        self.finish(set_content_type=NDJSON)

    def on_connection_close(self) -> None:
        """Stop the search when the page is closed."""
        if self._stop is not None:
            self._stop.set()
        super().on_connection_close()

    def _search_request(self) -> SearchRequest:
        back = bool(self.query_int("backward", 0, 0, 1))
        begin = self.query_int("from", -1, -1, MAX_OFFSET)
        most = self.query_int("limit", 200, 1, MAX_HITS)
        if self.query_text("preset") == "errors":
            pattern = compile_pattern(ERROR_PATTERN, regex=True, case=True)
        else:
            regex = bool(self.query_int("regex", 0, 0, 1))
            case = bool(self.query_int("case", 0, 0, 1))
            pattern = compile_pattern(
                self.query_text("q", limit=MAX_PATTERN), regex=regex, case=case
            )
        return SearchRequest(pattern, None if begin < 0 else begin, back, most)

    async def _search(
        self, reader: LogReader, key: LogKey, request: SearchRequest, stop: threading.Event
    ) -> SearchResult:
        loop = asyncio.get_running_loop()
        index: list[TimeIndex] = []

        def emit(hits: Sequence[Hit]) -> None:
            index[:] = index or [reader.index(key)]
            lines = [{**asdict(hit), "time": index[0].time_of(hit.offset)} for hit in hits]
            # Wait for the page, so that a slow one slows its search down.
            sending = asyncio.run_coroutine_threadsafe(self._send(lines), loop)
            sending.result(SEND_TIMEOUT)

        return await search_limiter(self.service).run(
            lambda: search_log(reader, key, request, stop, emit),
            WAIT_TIMEOUT + TIME_LIMIT + SEND_TIMEOUT,
        )

    async def _send(self, hits: Sequence[Mapping[str, Any]]) -> None:
        self.write("".join(json.dumps(hit) + "\n" for hit in hits))
        await self.flush()


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/(?P<job>[^/]+)/logs", LogsHandler),
    (r"jobs/(?P<job>[^/]+)/log", BytesHandler),
    (r"jobs/(?P<job>[^/]+)/log/times", TimesHandler),
    (r"jobs/(?P<job>[^/]+)/log/page", PageHandler),
    (r"jobs/(?P<job>[^/]+)/log/search", SearchHandler),
]
