"""The jobs that are on display somewhere: one stream a job, one text of it for all pages.

A display begins with the first page that shows the job and ends with the last. How a job is
followed is the core's ``watch``; what a page gets is ``channel.job_feed``'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from submarine_jobs.client import Watcher, final_record
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_runtime.protocol.states import State
from submarine_server.displays.shared import Shared
from submarine_server.views import About, view_json

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_server.monitor import JobsWatch
    from submarine_server.service import Core

log = logging.getLogger(__name__)

#: Seconds that a view waits for what the job's directory says besides.
MOMENT = 1.0


class Display:
    """One job (or run), for all pages that show it."""

    def __init__(self) -> None:
        #: The message of the newest view without the number of a subscription; empty: none yet.
        self.text = ""
        self.number = 0
        self.ended = False
        #: Why there will be no view.
        self.error: BaseException | None = None
        self._changed = asyncio.Event()

    def show(self, message: Mapping[str, object], *, ended: bool = False) -> None:
        """Take the newest view, as the message that goes out."""
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
        if text != self.text or ended != self.ended:
            self.text, self.ended = text, ended
            self._tell()

    def end(self) -> None:
        """Nothing follows what was shown."""
        self.ended = True
        self._tell()

    def fail(self, error: BaseException) -> None:
        """There is nothing to show."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        self.number += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def texts(self) -> AsyncIterator[str]:
        """The newest message whenever the one before has been taken; the last one in any case."""
        number, told = 0, ""
        while not self.ended or number < self.number:
            while self.number <= number:
                await self._changed.wait()
            number = self.number
            if self.error is not None:
                raise self.error
            if self.text != told:
                yield (told := self.text)


class _Besides:
    """What a view says besides the record; soon, or without what the file system keeps back.

    Parameters
    ----------
    came
        Set when there is more to say than there was.
    """

    def __init__(self, core: Core, job: Job, came: asyncio.Event) -> None:
        self._core, self._job, self._came = core, job, came
        self._asking: asyncio.Future[About] | None = None
        self._late = False

    async def about(self, view: JobView) -> About:
        """What is known within a moment; ``came`` is set when it is more."""
        asking = self._asking
        if asking is None:  # one question at a time, however long it takes
            call = self._core.call(self._core.abouts.of, self._job, view.record)
            asking = self._asking = asyncio.ensure_future(call)
            asking.add_done_callback(self._done)
        await asyncio.wait([asking], timeout=MOMENT)
        if asking.done() and not asking.cancelled() and asking.exception() is None:
            return asking.result()
        self._late = True
        return await self._core.here(self._core.abouts.guess, self._job, view.record)

    def _done(self, asking: asyncio.Future[About]) -> None:
        self._asking = None
        failed = asking.cancelled() or asking.exception() is not None
        if self._late and not failed:
            self._came.set()
        self._late = False


class Displays:
    """All displays of a server."""

    def __init__(self, core: Core, jobs: JobsWatch) -> None:
        self._core = core
        self._jobs = jobs
        self._shared = Shared(Display, self._work, lambda display: display.error is not None)
        self._watchers: dict[Session, Watcher] = {}

    def open(self, job_id: str) -> AbstractAsyncContextManager[Display]:
        """The display of a job, while a page shows it."""
        return self._shared.open(job_id)

    async def _work(self, job_id: str, display: Display) -> None:
        try:
            job = await self._core.job(job_id)
            known = await self._core.here(job.index_entry)
            if known is not None and known.final:
                await self._end(display, job)
            else:
                with self._jobs.looking():
                    await self._follow(display, job)
        except (SubmarineError, TimeoutError) as error:
            display.fail(error)
        except Exception as error:
            log.exception("job %s cannot be shown", job_id)
            display.fail(error)

    async def _follow(self, display: Display, job: Job) -> None:
        """Show each new view until the job has ended."""
        loop = asyncio.get_running_loop()
        newest: list[JobView] = []
        came = asyncio.Event()

        def take(view: JobView) -> None:
            newest[:] = [view]
            came.set()

        def heard(view: JobView) -> None:  # in the watcher's thread
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(take, view)

        watcher = self._watchers.get(job.session)
        if watcher is None:
            watcher = Watcher(job.session, self._jobs.observer, tails=False)
            self._watchers[job.session] = watcher
        besides = _Besides(self._core, job, came)
        stop = await self._core.here(watcher.subscribe, job, heard)
        try:
            while True:
                await came.wait()
                came.clear()
                view = newest[0]
                if view.record.state.ended and view.record.state is not State.LOST:
                    await self._end(display, job)
                    return
                display.show(_message(view, await besides.about(view)))
        finally:
            stop()

    async def _end(self, display: Display, job: Job) -> None:
        """Show the job's last word, whole."""
        record = await self._core.call(final_record, job)
        about = await self._core.call(self._core.abouts.of, job, record)
        display.show(_message(JobView(record, source="final"), about), ended=True)


def _message(view: JobView, about: About) -> dict[str, object]:
    return {"type": "job", "view": view_json(view, about)}
