"""Displayed jobs: one observation and one encoded message per job, for all connections.

A display starts with the first connection that shows the job and ends with the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from submarine_jobs.client import Watcher, final_record
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.tracking import RENEW_SECONDS, PageView
from submarine_runtime.protocol import State
from submarine_server.displays.shared import SharedPool
from submarine_server.views import JobDetails, view_json

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_server.monitor import JobMonitor
    from submarine_server.service import JobService

log = logging.getLogger(__name__)

#: Seconds that a view waits for details from the job directory.
DETAILS_TIMEOUT = 1.0


class Display:
    """A displayed job or workflow run."""

    def __init__(self) -> None:
        #: Latest message without the id of a subscription; empty before the first one.
        self.text = ""
        self.revision = 0
        self.ended = False
        #: Why there is no message.
        self.error: BaseException | None = None
        self._changed = asyncio.Event()

    def show(self, message: Mapping[str, object], *, ended: bool = False) -> None:
        """Set the latest message."""
        text = json.dumps(message, separators=(",", ":"), allow_nan=False)
        if text != self.text or ended != self.ended:
            self.text, self.ended = text, ended
            self._notify()

    def end(self) -> None:
        """Mark the display as ended."""
        self.ended = True
        self._notify()

    def fail(self, error: BaseException) -> None:
        """Mark the display as failed."""
        self.error = error
        self._notify()

    def _notify(self) -> None:
        self.revision += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def messages(self) -> AsyncIterator[str]:
        """Yield the latest message after each consumed one, including the last message."""
        revision, sent = 0, ""
        while not self.ended or revision < self.revision:
            while self.revision <= revision:
                await self._changed.wait()
            revision = self.revision
            if self.error is not None:
                raise self.error
            if self.text != sent:
                yield (sent := self.text)


class _DetailsLoader:
    """Load the details of a job without delaying its views.

    Parameters
    ----------
    changed
        Set when details arrive late.
    """

    def __init__(self, service: JobService, job: Job, changed: asyncio.Event) -> None:
        self._service, self._job, self._changed = service, job, changed
        self._pending: asyncio.Future[JobDetails] | None = None
        self._late = False

    async def load(self, view: JobView) -> JobDetails:
        """Return the details, or after a timeout the local ones; then set ``changed`` later."""
        pending = self._pending
        if pending is None:  # one call at a time
            call = self._service.call(self._service.details.get, self._job, view.record)
            pending = self._pending = asyncio.ensure_future(call)
            pending.add_done_callback(self._done)
        await asyncio.wait([pending], timeout=DETAILS_TIMEOUT)
        if pending.done() and not pending.cancelled() and pending.exception() is None:
            return pending.result()
        self._late = True
        return await self._service.call_local(
            self._service.details.get_local, self._job, view.record
        )

    def _done(self, pending: asyncio.Future[JobDetails]) -> None:
        self._pending = None
        failed = pending.cancelled() or pending.exception() is not None
        if self._late and not failed:
            self._changed.set()
        self._late = False


class JobDisplays:
    """Displayed jobs of a server."""

    def __init__(self, service: JobService, monitor: JobMonitor) -> None:
        self._service = service
        self._monitor = monitor
        self._shared = SharedPool(Display, self._work, lambda display: display.error is not None)
        self._watchers: dict[Session, Watcher] = {}

    def open(self, job_id: str) -> AbstractAsyncContextManager[Display]:
        """Return a context manager with the display of a job."""
        return self._shared.open(job_id)

    async def _work(self, job_id: str, display: Display) -> None:
        try:
            job = await self._service.job(job_id)
            known = await self._service.call_local(job.index_entry)
            if known is not None and known.final:
                await self._end(display, job)
            else:
                with self._monitor.keep_polling():
                    await self._follow(display, job)
        except (SubmarineError, TimeoutError) as error:
            display.fail(error)
        except Exception as error:
            log.exception("job %s cannot be shown", job_id)
            display.fail(error)

    async def _follow(self, display: Display, job: Job) -> None:
        """Show each new view until the job has ended."""
        loop = asyncio.get_running_loop()
        latest: list[JobView] = []
        changed = asyncio.Event()

        def take(view: JobView) -> None:
            latest[:] = [view]
            changed.set()

        def on_view(view: JobView) -> None:  # called in the watcher's thread
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(take, view)

        watcher = self._watchers.get(job.session)
        if watcher is None:
            watcher = Watcher(job.session, self._monitor.observer, tails=False)
            self._watchers[job.session] = watcher
        loader = _DetailsLoader(self._service, job, changed)
        page_view = PageView(job.session.profile.state_dir, job.id)
        renewal: asyncio.Task[None] | None = None
        stop = await self._service.call_local(watcher.subscribe, job, on_view)
        try:
            while True:
                await changed.wait()
                changed.clear()
                view = latest[0]
                if renewal is None:
                    renewal = loop.create_task(self._renew(page_view, latest))
                if view.record.state.ended and view.record.state is not State.LOST:
                    await self._end(display, job)
                    return
                display.show(_message(view, await loader.load(view)))
        finally:
            stop()
            if renewal is not None:
                renewal.cancel()
            page_view.remove()

    async def _renew(self, page_view: PageView, latest: Sequence[JobView]) -> None:
        """Publish the newest view for kernels, so that they do not poll the job."""
        while True:
            view = latest[0]
            with contextlib.suppress(SubmarineError, TimeoutError):
                await self._service.call_local(page_view.publish, view)
            # The record of a thousand tasks is large.
            await asyncio.sleep(max(RENEW_SECONDS, len(view.record.tasks) / 100))

    async def _end(self, display: Display, job: Job) -> None:
        """Show the final record."""
        record = await self._service.call(final_record, job)
        details = await self._service.call(self._service.details.get, job, record)
        display.show(_message(JobView(record, source="final"), details), ended=True)


def _message(view: JobView, details: JobDetails) -> dict[str, object]:
    return {"type": "job", "view": view_json(view, details)}
