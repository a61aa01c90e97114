"""Follow the log of a job's tasks in the calling thread: live, else as it is shipped.

Loses and repeats no byte across a broken connection: what is sent again is dropped, what is missing
is fetched by offset. A file system or cluster that does not answer is asked again until it does,
and a note says from when to when that was. A task that is started again goes on with its new
attempt, after a note. Does not display.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import AgentClient, LogChunk, attempt_of, chunk_of
from submarine_jobs.errors import ClusterError, NoAccessError
from submarine_jobs.logs.position import LogKey, LogPosition, order, start_at
from submarine_jobs.logs.shipped_log import ShippedLog, shipped_attempts, shipped_tasks
from submarine_runtime.protocol.layout import STREAMS

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Seconds between looks while there is no agent to listen to: from, to, growing by half.
FIRST_PAUSE, LAST_PAUSE = 0.5, 10.0
LIMIT = 1 << 20
#: Seconds without an answer after which that is said before the log continues.
SILENCE_TOLD = 60.0
#: In place of a list of tasks: all that there are.
EVERY = "*"


class Gap:
    """A time in which the shipped log cannot be read: a note about it once it is over.

    A note comes earlier as well where the gap is longer than ``SILENCE_TOLD``.
    """

    def __init__(self) -> None:
        self._last_read = time.time()
        self._trouble: ClusterError | None = None
        self._told = False

    def failed(self, error: ClusterError) -> Iterator[LogChunk]:
        """The job directory or the cluster did not answer."""
        self._trouble = self._trouble or error
        if not self._told and time.time() - self._last_read > SILENCE_TOLD:
            self._told = True
            words = f"no new output since {_clock(self._last_read)}; following continues"
            yield _note(f"{words}: {error.message}")

    def closed(self) -> Iterator[LogChunk]:
        """The job directory was read to its end, or more of the log has come."""
        now = time.time()
        if self._trouble is not None:
            words = f"from {_clock(self._last_read)} to {_clock(now)} the log could not be read"
            yield _note(f"{words} ({self._trouble.message.rstrip('.')}); it continues here")
        self._trouble, self._told, self._last_read = None, False, now


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def _note(words: str) -> LogChunk:
    return LogChunk("stderr", 0, b"", note=words)


class Following:
    """One reader of one job.

    Parameters
    ----------
    tasks
        Names of tasks, or ``(EVERY,)``.
    position
        From where; moved along.
    """

    def __init__(self, job: JobHandle, tasks: Sequence[str], position: LogPosition) -> None:
        self._job = job
        self._tasks = tuple(tasks)
        self._position = position
        self._shipped: dict[tuple[str, str], ShippedLog] = {}
        #: The attempt of each task that was read last.
        self._attempts: dict[str, str] = {}
        for key in position.keys:
            if order(key.attempt) >= order(self._attempts.get(key.task, "")):
                self._attempts[key.task] = key.attempt

    def chunks(self) -> Iterator[LogChunk]:
        """Pieces and notes until the job has ended."""
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
        """What is sent until nothing more is; nothing where nobody listens."""
        try:
            client = self._job.agent()
            if client is None:
                return
            for line in client.stream(1 << 30, **self._position.query(self._tasks)):  # type: ignore[arg-type]
                if line.get("type") == "end":
                    return
                if line.get("type") in ("log", "skip") and self._wanted(str(line["task"])):
                    yield from self._take(client, line)
        except (ClusterError, FileNotFoundError, KeyError, ValueError):
            return

    def _wanted(self, task: str) -> bool:
        return task in self._tasks or EVERY in self._tasks

    def _take(self, client: AgentClient, line: dict[str, Any]) -> Iterator[LogChunk]:
        key = LogKey(str(line["task"]), attempt_of(line), str(line["stream"]))
        if key.stream not in STREAMS:
            return
        yield from self._turn(key.task, key.attempt)
        begin = int(line["to"] if line["type"] == "skip" else line["offset"])
        if begin > self._position.of(key):
            yield from self._missing(client, key, begin)
        if line["type"] == "log":
            fresh = self._position.fresh(chunk_of(line))
            if fresh is not None:
                yield fresh

    def _turn(self, task: str, attempt: str) -> Iterator[LogChunk]:
        """Go on to another attempt of a task: the rest of the last one, then a note."""
        last = self._attempts.get(task)
        if last == attempt:
            return
        if last is not None:
            if order(attempt) > order(last):
                with suppress(ClusterError):  # it is read later, with what else was shipped
                    yield from self._rest(task, last)
                words = f"{task} was started again; its log goes on with attempt {attempt}"
            else:
                words = f"more of attempt {attempt} of {task}"
            yield LogChunk("stderr", 0, b"", task, attempt, note=words)
        self._attempts[task] = attempt

    def _missing(self, client: AgentClient, key: LogKey, end: int) -> Iterator[LogChunk]:
        """Fetch what the other side left out because this reader was slow."""
        position = self._position
        while position.of(key) < end:
            begin = position.of(key)
            limit = min(LIMIT, end - begin)
            try:
                chunk, _ = client.log(key.task, key.stream, begin, limit, key.attempt)
            except ClusterError:
                break
            fresh = position.fresh(LogChunk(key.stream, chunk.offset, chunk.data, *key[:2]))
            if fresh is None or chunk.offset > begin:
                break
            yield fresh
        if position.of(key) < end:
            yield from self._read(key)
        if position.of(key) < end:
            lost = end - position.of(key)
            position.move(key, end)
            words = f"{lost} bytes of {key.stream} of {key.task} cannot be had now"
            yield LogChunk(key.stream, end, b"", key.task, key.attempt, note=words)

    def _all_shipped(self) -> Iterator[LogChunk]:
        """What lies in the job directory and was not read yet."""
        directory = self._job.directory
        names = shipped_tasks(directory) if EVERY in self._tasks else self._tasks
        for task in names:
            attempts = shipped_attempts(directory, task)
            seen = self._attempts.get(task)
            first = seen if seen is not None else next(reversed(attempts), "")
            known = [key.attempt for key in self._position.keys if key.task == task]
            for attempt in attempts:
                if order(attempt) >= order(first) or attempt in known:
                    yield from self._rest(task, attempt)

    def _rest(self, task: str, attempt: str) -> Iterator[LogChunk]:
        """What was shipped of one attempt and not read; notes the turn to it."""
        try:
            log = self._shipped.setdefault(
                (task, attempt), ShippedLog(self._job.directory, task, attempt)
            )
            log.refresh()
        except FileNotFoundError:
            return
        for stream in STREAMS:
            key = LogKey(task, attempt, stream)
            if log.length(stream) > self._position.of(key):
                if self._attempts.get(task) != attempt:
                    yield from self._turn(task, attempt)
                yield from self._read(key)

    def _read(self, key: LogKey) -> Iterator[LogChunk]:
        log = self._shipped.get(key[:2])
        if log is None:
            log = self._shipped[key[:2]] = ShippedLog(self._job.directory, *key[:2])
            log.refresh()
        try:
            for chunk in log.read_through(key.stream, self._position.of(key)):
                fresh = self._position.fresh(chunk)
                if fresh is not None:
                    yield fresh
        except FileNotFoundError:
            return


def follow(job: JobHandle, tasks: Sequence[str], position: LogPosition) -> Iterator[LogChunk]:
    """Pieces of both streams of ``tasks`` from ``position`` until the job has ended."""
    return Following(job, tasks, position).chunks()


def follow_newest(
    job: JobHandle, tasks: Sequence[str], offsets: Mapping[str, int]
) -> Iterator[LogChunk]:
    """The same from ``offsets`` (stream -> bytes) of the newest attempt of the first task."""
    return follow(job, tasks, start_at(job, tasks[0], offsets))
