"""Follow every job on display with one background thread, and say when something changed.

One call to each backend per poll for all jobs that wait, one connection to the agent of each job
that runs, nothing for jobs that have ended. Does not display: a subscriber gets a ``JobView``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from submarine_jobs.access import StreamBrokenError, open_stream
from submarine_jobs.client.polling import Observe, look
from submarine_jobs.client.views import first_record, known_of, merge_live
from submarine_jobs.client.watched_job import Callback, Watched
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import StorageError, SubmarineError
from submarine_jobs.logs import Tail
from submarine_jobs.tracking import observe_all, remember
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session

log = logging.getLogger(__name__)

#: Seconds between polls of the backend: just after a change, and at most.
FIRST_POLL, LAST_POLL = 0.5, 10.0
#: Seconds between two calls of a subscriber.
QUIET = 0.3
#: States in which there is somebody to hear, as far as this machine knows.
_LISTENING = (State.RUNNING, State.RESTARTING, State.FINISHING)


class Watcher:
    """The one watcher of a process; its thread starts with the first subscription.

    Parameters
    ----------
    observe
        Takes the place of the watcher's own questions to the backends, for a process that asks
        them anyway: it blocks until there is something new, and so sets the pace of the polls.
    tails
        Whether the views hold the end of the log. Without it no log is asked for, and the events
        are, which otherwise only those of distributed jobs are.
    """

    def __init__(
        self, session: Session, observe: Observe | None = None, *, tails: bool = True
    ) -> None:
        self._session = session
        self._observe = observe or observe_all
        self._longest = LAST_POLL if observe is None else FIRST_POLL
        self._tails = tails
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._watched: dict[str, Watched] = {}
        self._numbers = iter(range(1 << 62))

    def subscribe(self, job: Job | str, callback: Callback) -> Callable[[], None]:
        """Have ``callback`` called with each new view, from the watcher's thread.

        It is called at most a few times a second, always once with the final view, and not again
        after that. Returns a function that ends the subscription.
        """
        handle = self._session.job(job) if isinstance(job, str) else job
        first = first_record(handle)
        number = next(self._numbers)
        loop = self._running_loop()

        def add() -> None:
            watched = self._watched.get(handle.id)
            if watched is None:
                watched = self._watched[handle.id] = Watched(handle, first, tails=self._tails)
            watched.callbacks[number] = callback
            self._publish(watched, at_once=True)
            if watched.record.state in _LISTENING:
                self._attach(watched)  # without waiting for the poll: what is known here is old
            if self._wake is not None:
                self._wake.set()

        def remove() -> None:
            watched = self._watched.get(handle.id)
            if watched is not None:
                watched.callbacks.pop(number, None)
                if not watched.callbacks:
                    del self._watched[handle.id]

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
        loop.run_until_complete(self._poll_for_ever())

    async def _poll_for_ever(self) -> None:
        self._wake = asyncio.Event()
        pause = FIRST_POLL
        while True:
            waiting = [item for item in self._watched.values() if not item.attached]
            if not waiting:
                self._wake.clear()
                if not [item for item in self._watched.values() if not item.attached]:
                    await self._wake.wait()
                pause = FIRST_POLL
                continue
            changed = await self._poll(waiting)
            pause = FIRST_POLL if changed else min(pause * 1.3, self._longest)
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
                pause = FIRST_POLL

    async def _poll(self, waiting: list[Watched]) -> bool:
        """Look at jobs that no agent tells of; returns whether anything changed."""
        try:
            views = await in_thread(lambda: look(self._session, waiting, self._observe))
        except SubmarineError as error:
            for item in waiting:
                item.pending = f"The cluster does not answer: {error.message}"
                self._publish(item)
            return False
        except Exception:
            log.exception("jobs on display cannot be looked at")
            return False
        changed = False
        for item in waiting:
            if (view := views.get(item.job.id)) is None or item.attached:
                continue
            changed |= view.record.state is not item.record.state
            if not (item.heard and view.source == "backend"):
                item.record = view.record  # what the job itself said is finer
            item.pending, item.source = view.pending or item.record.pending, view.source
            if view.source in ("final", "shipped"):
                item.tail = Tail()
                item.tail.set_text(view.tail)
            if item.placed and not item.record.state.ended:
                self._attach(item)
            self._publish(item, at_once=item.record.state.ended)
        return changed

    def _attach(self, item: Watched) -> None:
        if item.listening is not None and not item.listening.done():
            return
        # Kept from being collected while it waits:
        item.listening = asyncio.get_running_loop().create_task(self._listen(item))

    async def _listen(self, item: Watched) -> None:
        """Take the agent's stream until it ends or breaks, then leave the job to the poll."""
        try:
            item.unheard += 1
            address = await in_thread(item.job.directory.address)
            item.silent = None
            if address is not None:
                if item.tails and not item.seen_log:
                    await in_thread(lambda: self._start_at_tail(item))
                words, known = item.wanted()
                # Left in the middle it must be closed here: the loop may be stopped by then.
                async with contextlib.aclosing(open_stream(address, words, known)) as lines:
                    async for line in lines:
                        # From now on only: who does not answer must not stop the polls.
                        item.attached, item.unheard = True, 0
                        self._take(item, line)
                        if self._watched.get(item.job.id) is not item:
                            return
        except (SubmarineError, StreamBrokenError, FileNotFoundError, ValueError, KeyError) as exc:
            log.debug("stream of %s broke: %s", item.job.id, exc)
            if isinstance(exc, StorageError):
                item.silent = exc
        await asyncio.sleep(FIRST_POLL)
        item.attached = False
        if self._wake is not None:
            self._wake.set()

    def _start_at_tail(self, item: Watched) -> None:
        agent = item.job.agent()
        if agent is None:
            return
        item.begin(agent.status())
        item.seen_log = True

    def _take(self, item: Watched, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind in ("log", "skip", "event"):
            if not item.hear(line):
                return
        elif kind in ("status", "end"):
            record = merge_live(item.record, JobRecord.from_json(line["record"]))
            if record.state.ended and kind == "status":
                if not record.pending:
                    return
                record.state = State.FINISHING  # its record waits for the file system
            item.heard, item.over = True, kind == "end"
            changed = record.state is not item.record.state
            item.record, item.pending, item.source = record, record.pending, "live"
            if changed and not record.state.ended:
                remember(self._session.store, known_of(item.job), record)
            if record.state.ended:
                # The poll reads the published record and says the last word.
                item.record.state = State.FINISHING
        else:
            return
        self._publish(item)

    def _publish(self, item: Watched, *, at_once: bool = False) -> None:
        """Call the subscribers now, or a little later when they have just been called."""
        loop = asyncio.get_running_loop()
        wait = item.published + QUIET - loop.time()
        if at_once or wait <= 0:
            self._call(item, loop.time())
        elif not item.dirty:
            item.dirty = True
            loop.call_later(wait, self._call_if_dirty, item)

    def _call_if_dirty(self, item: Watched) -> None:
        if item.dirty:
            self._call(item, asyncio.get_running_loop().time())

    def _call(self, item: Watched, now: float) -> None:
        item.published, item.dirty = now, False
        view = item.view()
        for callback in list(item.callbacks.values()):
            try:
                callback(view)
            except Exception:
                log.exception("a display of job %s failed", item.job.id)
        final = view.record.state.ended and view.record.state is not State.LOST
        if final and self._watched.get(item.job.id) is item:
            item.callbacks.clear()
            del self._watched[item.job.id]
