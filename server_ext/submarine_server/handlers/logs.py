"""Which logs a job has, their bytes and their times, a download: ``jobs/ID/logs``, ``jobs/ID/log``.

A log is a container's text: it goes out as plain text that no browser may take for anything else.
Searching is ``log_search``, following is the websocket's.
"""

from __future__ import annotations

from tornado.iostream import StreamClosedError

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.logs import LogKey, check, part_of
from submarine_runtime.protocol import wire
from submarine_server.base import BaseHandler, checked_job_id, guarded
from submarine_server.logs import MOST, LogReader, list_logs, log_key, newest_attempt, reader_of

#: The largest offset that may be asked for; what JavaScript can count to.
FARTHEST = (1 << 53) - 1
#: Text that came out of a container; nothing else may be made of it.
PLAIN = "text/plain; charset=utf-8"
ATTEMPT_HEADER = "X-Submarine-Attempt"
#: Pairs of offset and time in one answer.
MAX_MARKS = 2000


class LogHandler(BaseHandler):
    """What all requests about one log have in common: whose it is, and which."""

    async def reader(self, job: str) -> LogReader:
        """The reader of the job that the address names."""
        return await self.core.call(reader_of, self.core, checked_job_id(job))

    async def key(self, reader: LogReader) -> LogKey:
        """The log that is asked for: ``task``, ``attempt`` (absent: the newest), ``stream``."""
        task = self.query("task") or await self.core.call(lambda: reader.job.chief)
        attempt = self.query("attempt")
        check(task, attempt or None)
        if not attempt:
            attempt = await self.core.call(newest_attempt, reader, task)
        return log_key(task, attempt, self.query("stream", "stdout"))


class LogsHandler(LogHandler):
    """``GET jobs/ID/logs``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """All logs of the job with their lengths."""
        reader = await self.reader(job)
        self.answer({"logs": await self.core.call(list_logs, reader)})


class BytesHandler(LogHandler):
    """``GET jobs/ID/log``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """Bytes from an offset, negative from the end; with ``download=1`` all of it."""
        reader = await self.reader(job)
        key = await self.key(reader)
        if self.number("download", 0, 0, 1):
            await self._download(reader, key)
            return
        offset = self.number("offset", 0, -FARTHEST, FARTHEST)
        limit = self.number("limit", 256 << 10, 0, MOST)
        chunk, length = await self.core.call(reader.read, key, offset, limit)
        self.set_header(wire.OFFSET_HEADER, str(chunk.offset))
        self.set_header(wire.LENGTH_HEADER, str(length))
        self.set_header(ATTEMPT_HEADER, key.attempt)
        self.finish(chunk.data, set_content_type=PLAIN)

    async def _download(self, reader: LogReader, key: LogKey) -> None:
        """The log as it stands now; one piece of it in memory at a time.

        The length is announced, so that a download that breaks off is seen to have.
        """
        length = await self.core.call(reader.length, key)
        name = f"{reader.job.id}-{key.task.replace(':', '-')}-{key.attempt}-{key.stream}.log"
        self.set_header("Content-Type", PLAIN)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.set_header("Content-Length", str(length))
        done = 0
        while done < length:
            limit = min(MOST, length - done)
            data = await self._piece(reader, key, done, limit)
            try:
                self.write(data)
                await self.flush()
            except StreamClosedError:
                return
            done += len(data)
        self.finish(set_content_type=PLAIN)

    async def _piece(self, reader: LogReader, key: LogKey, offset: int, limit: int) -> bytes:
        """The next piece; if it cannot be had, the connection is cut or the request refused."""
        try:
            data = await self.core.call(reader.read_through, key, offset, limit)
            if data:
                return data
            raise UsageError(f"The log from {offset} on cannot be had.", "Try again later.")
        except (SubmarineError, TimeoutError, FileNotFoundError):
            if offset and (connection := self.request.connection) is not None:
                # The head has gone out: only a cut tells that this was not all.
                connection.stream.close()  # type: ignore[attr-defined]
            raise


class TimesHandler(LogHandler):
    """``GET jobs/ID/log/times``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """See ``ILogTimes``."""
        reader = await self.reader(job)
        key = await self.key(reader)
        offset = self.number("offset", 0, 0, FARTHEST)
        limit = self.number("limit", FARTHEST, 0, FARTHEST)
        found = await self.core.call(reader.times, key)
        marks = part_of(found.marks, offset, offset + limit, MAX_MARKS)
        self.answer({"attempt": key.attempt, "times": marks, "exact": found.exact})


ROUTES = [
    (r"jobs/(?P<job>[^/]+)/logs", LogsHandler),
    (r"jobs/(?P<job>[^/]+)/log", BytesHandler),
    (r"jobs/(?P<job>[^/]+)/log/times", TimesHandler),
]
