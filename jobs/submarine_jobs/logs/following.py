"""Follow the logs of a job in the calling thread: live from the agent, or as they are shipped.

No byte is lost or repeated after a broken connection: repeated bytes are dropped, missing bytes are
fetched by offset. If the file system or the cluster does not answer, reading is retried, and a note
in the log states the period. After the restart of a task, a note precedes the new attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import AgentClient, LogChunk, StreamBrokenError
from submarine_jobs.concurrency import background_loop
from submarine_jobs.errors import ClusterError, NoAccessError
from submarine_jobs.logs.shipped_log import ShippedLog, shipped_attempts, shipped_tasks
from submarine_runtime.protocol import LogCursor, LogKey, LogLine, attempt_order, read_log_line
from submarine_runtime.protocol.layout import FIRST_ATTEMPT, STREAMS
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Seconds between polls without an agent: first and last, growing by half.
FIRST_PAUSE, LAST_PAUSE = 0.5, 10.0
LIMIT = 1 << 20
#: Seconds without a response after which a note is added before the log continues.
GAP_NOTE_AFTER = 60.0
#: Selects all tasks.
EVERY = "*"


class Gap:
    """A period in which the shipped log cannot be read; yields a note at its end.

    A gap longer than ``GAP_NOTE_AFTER`` also yields a note before its end.
    """

    def __init__(self) -> None:
        self._last_read = time.time()
        self._error: ClusterError | None = None
        self._noted = False

    def failed(self, error: ClusterError) -> Iterator[LogChunk]:
        """Record that the job directory or the cluster did not answer."""
        self._error = self._error or error
        if not self._noted and time.time() - self._last_read > GAP_NOTE_AFTER:
            self._noted = True
            words = _("no new output since {last_read}; following continues").format(
                last_read=_clock(self._last_read)
            )
            yield _note(f"{words}: {error.message}")

    def closed(self) -> Iterator[LogChunk]:
        """Record that the log could be read again."""
        now = time.time()
        if self._error is not None:
            words = _("from {last_read} to {now} the log could not be read").format(
                last_read=_clock(self._last_read), now=_clock(now)
            )
            yield _note(
                _("{words} ({error}); it continues here").format(
                    words=words, error=self._error.message.rstrip(".")
                )
            )
        self._error, self._noted, self._last_read = None, False, now


def _clock(when: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(when))


def _note(words: str) -> LogChunk:
    return LogChunk("stderr", 0, b"", note=words)


class LogFollower:
    """Follows the logs of one job.

    Parameters
    ----------
    tasks
        Names of tasks, or ``(EVERY,)``.
    cursor
        Start position; updated while reading.
    """

    def __init__(self, job: JobHandle, tasks: Sequence[str], cursor: LogCursor) -> None:
        self._job = job
        self._tasks = tuple(tasks)
        self._cursor = cursor
        self._shipped: dict[tuple[str, str], ShippedLog] = {}
        #: The last read attempt of each task.
        self._attempts: dict[str, str] = {}
        for key in cursor.keys:
            if key.order >= attempt_order(self._attempts.get(key.task, "")):
                self._attempts[key.task] = key.attempt

    def chunks(self) -> Iterator[LogChunk]:
        """Yield chunks and notes until the job has ended."""
        pause, gap, ended = FIRST_PAUSE, Gap(), False
        while True:
            moved, trouble = False, None
            try:
                ended = ended or self._job.record().state.ended
                if not ended:
                    for chunk in self._live():
                        moved = True
                        yield from gap.closed()
                        yield chunk
                for chunk in self._all_shipped():
                    moved = True
                    yield from gap.closed()
                    yield chunk
            except NoAccessError:
                raise
            except ClusterError as error:
                trouble = error
            if trouble is not None:
                yield from gap.failed(trouble)
            else:
                yield from gap.closed()
                if ended:
                    return
            pause = FIRST_PAUSE if moved else min(pause * 1.5, LAST_PAUSE)
            time.sleep(pause)

    def _live(self) -> Iterator[LogChunk]:
        """Yield the chunks of the agent until its stream ends; nothing without an agent."""
        try:
            client = self._job.agent()
            if client is None:
                return
            for line in _lines(client, self._cursor.query(self._tasks)):
                if line.get("type") == "end":
                    return
                found = read_log_line(line)
                if found is not None and self._is_selected(found.key.task):
                    yield from self._read_line(client, found)
        except (ClusterError, StreamBrokenError, FileNotFoundError, KeyError, ValueError):
            return

    def _is_selected(self, task: str) -> bool:
        return task in self._tasks or EVERY in self._tasks

    def _read_line(self, client: AgentClient, line: LogLine) -> Iterator[LogChunk]:
        key = line.key
        yield from self._switch(key.task, key.attempt)
        begin = line.end if line.data is None else line.begin
        if self._cursor.gap(key, begin):
            yield from self._missing(client, key, begin)
        fresh = LogChunk.of(line).fresh(self._cursor) if line.data is not None else None
        if fresh is not None:
            yield fresh

    def _switch(self, task: str, attempt: str) -> Iterator[LogChunk]:
        """Switch to another attempt of a task: yield the rest of the last one, then a note."""
        last = self._attempts.get(task)
        if last == attempt:
            return
        if last is not None:
            if attempt_order(attempt) > attempt_order(last):
                with suppress(ClusterError):  # it is read later with the shipped logs
                    yield from self._rest(task, last)
                words = _(
                    "{task} was started again; its log goes on with attempt {attempt}"
                ).format(task=task, attempt=attempt)
            else:
                words = _("more of attempt {attempt} of {task}").format(attempt=attempt, task=task)
            yield LogChunk("stderr", 0, b"", task, attempt, note=words)
        self._attempts[task] = attempt

    def _missing(self, client: AgentClient, key: LogKey, end: int) -> Iterator[LogChunk]:
        """Fetch the bytes that the agent skipped because this reader was slow."""
        cursor = self._cursor
        while cursor.gap(key, end):
            begin = cursor.of(key)
            limit = min(LIMIT, end - begin)
            try:
                chunk, _size = client.log(key.task, key.stream, begin, limit, key.attempt)
            except ClusterError:
                break
            fresh = chunk.fresh(cursor)
            if fresh is None or chunk.offset > begin:
                break
            yield fresh
        if cursor.gap(key, end):
            yield from self._read(key)
        if lost := cursor.gap(key, end):
            cursor.move(key, end)
            words = _("{lost} bytes of {stream} of {task} are not available now").format(
                lost=lost, stream=key.stream, task=key.task
            )
            yield LogChunk(key.stream, end, b"", key.task, key.attempt, note=words)

    def _all_shipped(self) -> Iterator[LogChunk]:
        """Yield the chunks in the job directory that were not read yet."""
        directory = self._job.directory
        names = shipped_tasks(directory) if EVERY in self._tasks else self._tasks
        for task in names:
            attempts = shipped_attempts(directory, task)
            current = self._attempts.get(task)
            first = current if current is not None else next(reversed(attempts), "")
            known = [key.attempt for key in self._cursor.keys if key.task == task]
            for attempt in attempts:
                if attempt_order(attempt) >= attempt_order(first) or attempt in known:
                    yield from self._rest(task, attempt)

    def _rest(self, task: str, attempt: str) -> Iterator[LogChunk]:
        """Yield the unread shipped bytes of one attempt, after a note if it is another attempt."""
        try:
            log = self._shipped.setdefault(
                (task, attempt), ShippedLog(self._job.directory, task, attempt)
            )
            log.refresh()
        except FileNotFoundError:
            return
        for stream in STREAMS:
            key = LogKey(task, attempt, stream)
            if log.length(stream) > self._cursor.of(key):
                if self._attempts.get(task) != attempt:
                    yield from self._switch(task, attempt)
                yield from self._read(key)

    def _read(self, key: LogKey) -> Iterator[LogChunk]:
        log = self._shipped.get(key[:2])
        if log is None:
            log = self._shipped[key[:2]] = ShippedLog(self._job.directory, *key[:2])
            log.refresh()
        try:
            for chunk in log.read_through(key.stream, self._cursor.of(key)):
                fresh = chunk.fresh(self._cursor)
                if fresh is not None:
                    yield fresh
        except FileNotFoundError:
            return


def _lines(client: AgentClient, position: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
    loop, lines = background_loop("submarine-logs"), client.stream(position)
    try:
        while line := asyncio.run_coroutine_threadsafe(anext(lines, None), loop).result():
            yield line
    finally:
        asyncio.run_coroutine_threadsafe(lines.aclose(), loop)


def follow(job: JobHandle, tasks: Sequence[str], cursor: LogCursor) -> Iterator[LogChunk]:
    """Yield chunks of both streams of ``tasks`` from ``cursor`` until the job has ended."""
    return LogFollower(job, tasks, cursor).chunks()


def follow_newest(
    job: JobHandle, tasks: Sequence[str], offsets: Mapping[str, int]
) -> Iterator[LogChunk]:
    """Follow from ``offsets`` (stream -> bytes) of the newest attempt of the first task."""
    attempt = next(reversed(job.attempts(tasks[0])), FIRST_ATTEMPT) if any(offsets.values()) else ""
    at = {LogKey(tasks[0], attempt, name): place for name, place in offsets.items()}
    return follow(job, tasks, LogCursor(at if attempt else None))
