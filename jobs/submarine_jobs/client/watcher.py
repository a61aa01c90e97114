"""Watch all displayed jobs in one background thread, and call subscribers with new views.

Each poll makes one call to each backend for all waiting jobs. Each running job has one connection
to its agent. Jobs that have ended cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submarine_jobs import model
from submarine_jobs.access import AgentClient, LogChunk, NoTokenError, StreamBrokenError
from submarine_jobs.backends import Observation, Stage
from submarine_jobs.client.job_ownership import noted_owner
from submarine_jobs.client.views import (
    first_record,
    index_entry_of,
    merge_live,
    pending_until_started,
    shipped_tail,
    shipped_view,
)
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import ClusterError, StorageError, SubmarineError
from submarine_jobs.logs import TAIL_BYTES, Tail
from submarine_jobs.model import JobView, chief_of_record, most_relevant_task
from submarine_jobs.tracking import (
    Owner,
    PageView,
    Target,
    observe_all,
    record_without_directory,
    resolve_record,
    save_record,
    with_owner,
)
from submarine_runtime.protocol import (
    Event,
    JobRecord,
    LogCursor,
    State,
    attempt_order,
    parse_log_key,
    read_log_line,
)
from submarine_runtime.protocol.layout import STREAMS
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session

log = logging.getLogger(__name__)

#: Seconds between polls of the backend: after a change, and the maximum.
FIRST_POLL, LAST_POLL = 0.5, 10.0
#: Minimum number of seconds between two calls of a subscriber.
MIN_INTERVAL = 0.3
#: Seconds between checks whether a page of the Jupyter server shows a displayed job.
PAGE_INTERVAL = 1.0
#: States in which a job may have an agent.
_WITH_AGENT = (State.RUNNING, State.RESTARTING, State.FINISHING)


class Watcher:
    """Watches the jobs of a session; the thread starts with the first subscription.

    Parameters
    ----------
    observe
        Replaces the calls to the backends, in a process that makes these calls anyway. It blocks
        until there are new observations, and so determines the interval of the polls.
    tails
        Whether the views contain the end of the log. Without it, the events of all jobs are
        requested instead of the logs; otherwise only the events of distributed jobs.
    interval
        Minimum number of seconds between two calls of a subscriber; None: ``MIN_INTERVAL``. The end
        of a job is reported at once.
    """

    def __init__(
        self,
        session: Session,
        observe: Observe | None = None,
        *,
        tails: bool = True,
        interval: float | None = None,
    ) -> None:
        self._session = session
        self._observe = observe or observe_all
        self._longest = LAST_POLL if observe is None else FIRST_POLL
        self._tails = tails
        self._interval = interval
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._watched: dict[str, WatchedJob] = {}
        self._page_loop_task: asyncio.Task[None] | None = None
        self._numbers = iter(range(1 << 62))

    def subscribe(
        self, job: Job | str, callback: Callback, *, display: bool = False
    ) -> Callable[[], None]:
        """Call ``callback`` with each new view, from the thread of the watcher.

        It is called at most a few times per second; the last call has the final view. Return a
        function that ends the subscription.

        Parameters
        ----------
        display
            The views are only displayed. While a page of the Jupyter server shows the job, they
            come from the server and have no end of the log.
        """
        handle = self._session.job(job) if isinstance(job, str) else job
        first = first_record(handle)
        if not first.state.ended:
            created = first.created or time.time()
            self._session.token_deliveries.keep(handle.id, created, handle)
        number = next(self._numbers)
        loop = self._running_loop()

        def add() -> None:
            watched = self._watched.get(handle.id)
            if watched is None:
                watched = self._watched[handle.id] = WatchedJob(handle, first, tails=self._tails)
            watched.callbacks[number] = callback
            if not display:
                watched.waiters.add(number)
                watched.on_page = False
            self._start_page_loop()
            self._publish(watched, at_once=True)
            if watched.record.state in _WITH_AGENT and not watched.on_page:
                self._attach(watched)  # do not wait for the poll: the local record may be old
            if self._wake is not None:
                self._wake.set()

        def remove() -> None:
            watched = self._watched.get(handle.id)
            if watched is not None:
                watched.callbacks.pop(number, None)
                watched.waiters.discard(number)
                if not watched.callbacks:
                    del self._watched[handle.id]
                self._start_page_loop()

        loop.call_soon_threadsafe(add)

        def unsubscribe() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(remove)

        return unsubscribe

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._run, args=(self._loop,), daemon=True, name="submarine-watch"
                ).start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._poll_loop())

    async def _poll_loop(self) -> None:
        self._wake = asyncio.Event()
        pause = FIRST_POLL
        while True:
            waiting = self._waiting()
            if not waiting:
                self._wake.clear()
                if not self._waiting():
                    await self._wake.wait()
                pause = FIRST_POLL
                continue
            changed = await self._poll(waiting)
            pause = FIRST_POLL if changed else min(pause * 1.3, self._longest)
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
                pause = FIRST_POLL

    def _waiting(self) -> list[WatchedJob]:
        """Return the jobs that must be polled."""
        return [item for item in self._watched.values() if not item.attached and not item.on_page]

    def _only_displayed(self) -> list[WatchedJob]:
        return [item for item in self._watched.values() if not item.waiters]

    def _start_page_loop(self) -> None:
        if self._page_loop_task is None and self._only_displayed():
            self._page_loop_task = asyncio.get_running_loop().create_task(self._page_loop())

    async def _page_loop(self) -> None:
        """Check which displayed jobs a page of the server shows; reads local files only."""
        while shown := self._only_displayed():
            try:
                await in_thread(lambda: check_pages(shown))
            except Exception:
                log.exception("the views of the server cannot be read")
            for item in shown:
                if self._watched.get(item.job.id) is item and not item.waiters:
                    self._apply_page(item)
            await asyncio.sleep(PAGE_INTERVAL)
        self._page_loop_task = None

    def _apply_page(self, item: WatchedJob) -> None:
        """Stop reading a job that a page shows, or read it again."""
        view, item.page_view = item.page_view, None
        if item.page_valid and not item.on_page:
            item.show_shipped("")
            if item.stream is not None:
                item.stream.cancel()
            item.attached = False
        elif item.on_page and not item.page_valid and self._wake is not None:
            self._wake.set()
        item.on_page = item.page_valid
        if view is not None:
            item.record, item.pending, item.source = view.record, view.pending, view.source
            self._publish(item, at_once=view.record.state.ended)

    async def _poll(self, waiting: list[WatchedJob]) -> bool:
        """Poll the jobs without a connection to an agent; return whether a state changed."""
        try:
            views = await in_thread(lambda: poll_jobs(self._session, waiting, self._observe))
        except SubmarineError as error:
            for item in waiting:
                item.pending = _("The cluster does not answer: {error}").format(error=error.message)
                self._publish(item)
            return False
        except Exception:
            log.exception("displayed jobs cannot be polled")
            return False
        changed = False
        for item in waiting:
            if (view := views.get(item.job.id)) is None or item.attached or item.on_page:
                continue
            changed |= view.record.state is not item.record.state
            if not (item.reported and view.source == "backend"):
                item.record = view.record  # the state from the job itself is more precise
            item.pending, item.source = view.pending or item.record.pending, view.source
            if view.source in ("final", "shipped"):
                item.show_shipped(view.tail)
            if item.running and not item.record.state.ended:
                self._attach(item)
            self._publish(item, at_once=item.record.state.ended)
        return changed

    def _attach(self, item: WatchedJob) -> None:
        if item.stream is not None and not item.stream.done():
            return
        # The reference prevents garbage collection of the task.
        item.stream = asyncio.get_running_loop().create_task(self._read_stream(item))

    async def _read_stream(self, item: WatchedJob) -> None:
        """Read the stream of the agent until it ends or breaks; then the job is polled again."""
        try:
            item.failures += 1
            address = await in_thread(item.job.directory.address)
            item.directory_error = None
            if address is not None:
                if item.tails and not item.positioned:
                    await in_thread(lambda: self._start_at_tail(item))
                words, known = item.stream_request()
                # Close it here when it is not read to its end: later the loop may be stopped.
                async with contextlib.aclosing(AgentClient(address).stream(words, known)) as lines:
                    async for line in lines:
                        # Attach after the first line: a silent agent must not stop polling.
                        item.attached, item.failures = True, 0
                        self._handle_line(item, line)
                        if self._watched.get(item.job.id) is not item:
                            return
        except NoTokenError:  # A shared job: its log is the uploaded one.
            item.failures = MAX_FAILURES
        except (SubmarineError, StreamBrokenError, FileNotFoundError, ValueError, KeyError) as exc:
            log.debug("stream of %s broke: %s", item.job.id, exc)
            if isinstance(exc, StorageError):
                item.directory_error = exc
        await asyncio.sleep(FIRST_POLL)
        item.attached = False
        if self._wake is not None:
            self._wake.set()

    def _start_at_tail(self, item: WatchedJob) -> None:
        agent = item.job.agent()
        if agent is None:
            return
        item.start_at_tail(agent.status())
        item.positioned = True

    def _handle_line(self, item: WatchedJob, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind in ("log", "skip", "event"):
            if not item.handle_line(line):
                return
        elif kind in ("status", "end"):
            record = merge_live(item.record, model.read_record(line["record"], item.job.id))
            if record.state.ended and kind == "status":
                if not record.pending:
                    return
                record.state = State.FINISHING  # its record is not published yet
            item.reported, item.ended = True, kind == "end"
            changed = record.state is not item.record.state
            item.record, item.pending, item.source = record, record.pending, "live"
            if changed and not record.state.ended:
                save_record(self._session.store, index_entry_of(item.job), record)
            if record.state.ended:
                # The poll reads the published record.
                item.record.state = State.FINISHING
        else:
            return
        self._publish(item)

    def _publish(self, item: WatchedJob, *, at_once: bool = False) -> None:
        """Call the subscribers now, or later if they were called less than an interval ago."""
        loop = asyncio.get_running_loop()
        interval = MIN_INTERVAL if self._interval is None else self._interval
        wait = item.published + interval - loop.time()
        if at_once or wait <= 0:
            self._call(item, loop.time())
        elif not item.dirty:
            item.dirty = True
            loop.call_later(wait, self._call_if_dirty, item)

    def _call_if_dirty(self, item: WatchedJob) -> None:
        if item.dirty:
            self._call(item, asyncio.get_running_loop().time())

    def _call(self, item: WatchedJob, now: float) -> None:
        item.published, item.dirty = now, False
        view = item.view()
        for callback in list(item.callbacks.values()):
            try:
                callback(view)
            except Exception:
                log.exception("a subscriber of job %s failed", item.job.id)
        final = view.record.state.ended and view.record.state is not State.LOST
        if final and self._watched.get(item.job.id) is item:
            item.callbacks.clear()
            del self._watched[item.job.id]


Callback = Callable[[JobView], None]
#: Maximum number of events of one job.
MAX_EVENTS = 200
#: An offset beyond the end of each log, and a number beyond each list of events.
NO_LOG, NO_EVENTS = 1 << 60, 1 << 30


class RecentEvents:
    """The newest events of a job without duplicates."""

    def __init__(self) -> None:
        self._kept: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._last: dict[str, int] = {}

    def add(self, event: Event) -> bool:
        """Add an event; return whether it is new."""
        if event.seq <= self._last.get(event.writer, -1):
            return False
        self._last[event.writer] = event.seq
        self._kept.append(event)
        return True

    @property
    def newest(self) -> list[Event]:
        """At most ``MAX_EVENTS`` events, in order of arrival."""
        return list(self._kept)


class WatchedJob:
    """One displayed job, with or without the end of its log."""

    def __init__(self, job: Job, record: JobRecord, *, tails: bool = True) -> None:
        self.job = job
        self.tails = tails
        self.record = record
        self.callbacks: dict[int, Callback] = {}
        #: The callbacks that are not only for display.
        self.waiters: set[int] = set()
        #: Whether the views come from the server; the last check found a valid view, and a new one.
        self.on_page = self.page_valid = False
        self.page_view: JobView | None = None
        self.tail = Tail()
        #: The tail was read from the job directory. The agent's stream replaces it.
        self.shipped = False
        self.cursor = LogCursor()
        #: The task whose log is shown, when it is known. Only one task is read.
        self.task = ""
        self.many = False
        self.events = RecentEvents()
        self.positioned = False
        self.failures = 0
        self.attached = False
        #: Running according to the backend; agent has reported; agent has reported the end.
        self.running = self.reported = self.ended = False
        #: Error of the last attempt to read the address from the job directory.
        self.directory_error: StorageError | None = None
        self.stream: asyncio.Task[None] | None = None
        self.pending = ""
        self.source = "backend"
        self.published: float = 0.0
        self.dirty = False

    def check_page(self) -> None:
        """Check whether a page of the server shows the job, and read its view; blocks."""
        self.page_valid, self.page_view = self._page.valid, None
        if self.page_valid:
            self.page_view = self._page.read()
        entry = self.job.index_entry() if self.on_page else None
        if entry is not None and entry.final and entry.record is not None:
            self.page_view = JobView(entry.record, source="final")
            with contextlib.suppress(ClusterError, FileNotFoundError):
                self.tail.set_text(self.final_tail(entry.record))

    def start_at_tail(self, record: JobRecord) -> None:
        """Choose the task whose log is shown, and move to the end of its log."""
        self.task = chief_of_record(record) if record.tasks else self.job.chief
        self.many = len(record.tasks) > 1 or len(self.job.task_names) > 1
        for text, length in record.logs.items():
            key = parse_log_key(text)
            if key is not None and key.task == self.task:
                self.cursor.move(key, max(0, length - TAIL_BYTES))

    def show_shipped(self, tail: str) -> None:
        """Show the shipped end of the log. The stream then starts again at the end of the log."""
        self.tail = Tail()
        self.tail.set_text(tail)
        self.cursor = LogCursor()
        self.positioned, self.shipped = False, True

    def stream_request(self) -> tuple[dict[str, str | int], int]:
        """Return the query of the stream, and the number of events to skip."""
        if not self.tails:
            return {**dict.fromkeys(STREAMS, NO_LOG), "tasks": ""}, 0
        words = self.cursor.query([self.task] if self.task else [], TAIL_BYTES)
        return words, 0 if self.many else NO_EVENTS

    def handle_line(self, line: Mapping[str, Any]) -> bool:
        """Handle a line of type log, skip or event; return whether the view has changed."""
        if line["type"] == "event":
            return self.events.add(model.read_part(Event, line["event"]))
        found = read_log_line(line)
        if found is None:
            return False
        key = found.key
        if found.data is None:
            self.cursor.take(key, found.begin, found.end)
            return False
        last = self.cursor.newest(key.task)
        chunk = LogChunk.of(found).fresh(self.cursor)
        if chunk is None or (self.many and chunk.task != self.task):
            return False
        if self.shipped:
            self.tail, self.shipped = Tail(), False
        if last is not None and key.order > attempt_order(last):
            words = _("--- {task} was restarted: attempt {attempt} ---").format(
                task=key.task, attempt=key.attempt
            )
            self.tail.add(LogChunk("stdout", 0, f"{words}\n".encode()))
        self.tail.add(chunk)
        return True

    def read_final_record(self) -> JobRecord | None:
        """Read the final record, which is published before the backend reports the end."""
        try:
            record = self.job.directory.record()
        except (ClusterError, ValueError):
            return None
        entry = self.job.index_entry()
        if record is not None and entry is not None:
            record.links = {**self.record.links, **record.links}
            save_record(self.job.session.store, entry, record)
        return record

    @functools.cached_property
    def _page(self) -> PageView:
        return PageView(self.job.session.profile.state_dir, self.job.id)

    @functools.cached_property
    def _owner(self) -> Owner | None:
        return noted_owner(self.job)

    def view(self) -> JobView:
        """Return the current view for subscribers."""
        events = self.events.newest
        record = replace(self.record, events=events) if events else self.record
        shown = self.task if len(record.tasks) > 1 else ""
        record = with_owner(record, self._owner)
        return JobView(record, self.tail.text(), self.pending, self.source, shown)

    def final_tail(self, record: JobRecord) -> str:
        """Return the end of the log of an ended job, from memory if it was read to its end."""
        if not self.tails:
            return ""
        task = self.task = most_relevant_task(record)
        newest = self.cursor.newest(task)
        ends = {
            key: length
            for text, length in record.logs.items()
            if (key := parse_log_key(text)) and (key.task, key.attempt) == (task, newest)
        }
        complete = all(self.cursor.of(key) == length for key, length in ends.items())
        return self.tail.text() if ends and complete else shipped_tail(self.job, record)


log = logging.getLogger(__name__)

#: Returns observations of jobs, as ``tracking.observe_all`` does.
Observe = Callable[[Iterable[Target]], Mapping[str, Observation]]
#: Failed connections to an agent after which the shipped log is shown.
MAX_FAILURES = 2


def check_pages(displayed: Iterable[WatchedJob]) -> None:
    """Check which jobs pages of the server show; blocks."""
    for item in displayed:
        item.check_page()


def poll_jobs(
    session: Session, waiting: Sequence[WatchedJob], observe: Observe
) -> dict[str, JobView]:
    """Return the views of the jobs that can be observed; blocks.

    Raises
    ------
    ClusterError
        If a backend or the file system does not answer.
    """
    targets = [
        Target(index_entry_of(item.job), item.job.directory, item.job.backend) for item in waiting
    ]
    observations = observe(targets)
    views: dict[str, JobView] = {}
    for item, target in zip(waiting, targets, strict=True):
        try:
            views[item.job.id] = _view(session, item, target, observations.get(item.job.id))
        except FileNotFoundError:
            continue
        except ClusterError:
            raise
        except Exception:  # an invalid job directory must not affect other jobs
            log.exception("job %s cannot be polled", item.job.id)
    return views


def _view(
    session: Session, item: WatchedJob, target: Target, observation: Observation | None
) -> JobView:
    record = item.read_final_record() if item.ended else None
    record = record or resolve_record(target, observation, session.store)
    item.running = observation is not None and observation.stage is Stage.RUNNING
    pending = observation.pending if observation else ""
    if item.directory_error is not None and item.running and not record.state.ended:
        record = record_without_directory(target, observation, session.store, item.directory_error)
        return JobView(pending_until_started(item.job, record), "", record.pending, "backend")
    record = pending_until_started(item.job, record)
    if record.state.ended:
        return JobView(record, item.final_tail(record), "", "final")
    if item.failures >= MAX_FAILURES and item.running:
        return shipped_view(item.job, record, pending)
    return JobView(record, "", pending or record.pending, "backend")
