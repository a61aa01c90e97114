"""Feeds of the channel, except logs: job list, job, metrics, kernel starts and workflow runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from submarine_jobs.errors import UsageError
from submarine_jobs.text import one_line
from submarine_jobs.tracking import Origin
from submarine_kernel.remote import PendingStart, list_pending, listening
from submarine_runtime.translation import _
from submarine_server.channel.feed import ChannelServices, Credit, Feed, Send, int_in, job_id_in
from submarine_server.channel.log_feed import LogFeed
from submarine_server.views import series_json

#: Seconds between two messages of the job list, and of kernel starts.
JOBS_PAUSE, STARTS_PAUSE = 0.3, 0.5


class JobsFeed(Feed):
    """``{kind: "jobs"}``: the job list, then changed rows."""

    kind: ClassVar[str] = "jobs"

    async def run(self) -> None:
        """Send a snapshot, then changes; a stale client receives a new snapshot."""
        table = self.services.monitor.table
        with self.services.monitor.keep_polling():
            await table.wait(0)
            update = table.snapshot()
            while True:
                await self.send(
                    {
                        "type": "jobs",
                        "whole": update.whole,
                        "rows": update.rows,
                        "total": update.total,
                        "problem": update.problem,
                    }
                )
                await asyncio.sleep(JOBS_PAUSE)
                await table.wait(update.revision)
                update = table.changes_since(update.revision)


class JobFeed(Feed):
    """``{kind: "job", job}``: the latest views of a job."""

    kind: ClassVar[str] = "job"

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, request, send, credit)
        self._job = job_id_in(request)

    async def run(self) -> None:
        """Send views until the job has ended."""
        async with self.services.jobs.open(self._job) as display:
            async for text in display.messages():
                await self.send(text)


class MetricsFeed(Feed):
    """``{kind: "metrics", job, points}``: all series, downsampled, then new samples."""

    kind: ClassVar[str] = "metrics"

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, request, send, credit)
        self._job = job_id_in(request)
        self._points = int_in(request, "points", 2, 5000, 300)

    async def run(self) -> None:
        """Send samples until the job has ended and all samples are sent."""
        async with self.services.metrics.open(self._job) as metrics:
            update = await metrics.changes_since(None)
            whole = True
            while True:
                rows = update.rows
                if rows or whole:
                    series = await self.services.service.call_local(series_json, rows, self._points)
                    await self.send({"type": "metrics", "series": series, "whole": whole})
                if update.ended:
                    return
                update, whole = await metrics.changes_since(update), False


#: Maximum length of a text, and maximum number of starts.
MAX_WORDS, MAX_STARTS = 200, 100


class StartsFeed(Feed):
    """``{kind: "starts"}``: kernels that the server is starting in containers."""

    kind: ClassVar[str] = "starts"

    async def run(self) -> None:
        """Send all starts, and again after each change."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:  # called in any thread
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(changed.set)

        with listening(wake):
            while True:
                changed.clear()
                starts = [self._start_json(start) for start in list_pending()[:MAX_STARTS]]
                await self.send({"type": "starts", "starts": starts})
                await asyncio.sleep(STARTS_PAUSE)
                await changed.wait()

    def _start_json(self, start: PendingStart) -> dict[str, str]:
        """``IKernelStart``, with the path of the document in the file browser."""
        notebook = self.services.service.details.visible_origin(Origin(start.notebook)).notebook
        words = one_line(start.status, MAX_WORDS)
        return {"kernel": start.kernel, "notebook": notebook, "words": words}


_MAX_TEXT = 500


class WorkflowFeed(Feed):
    """``{kind: "workflow", run, url}``: a run of this machine or of the Azkaban at ``url``."""

    kind: ClassVar[str] = "workflow"

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, request, send, credit)
        self._run = _text_in(request, "run")
        self._url = _text_in(request, "url", "")
        if not self._run:
            raise UsageError(
                _("`run` must be the id of a run."), _("See `submarine workflow history`.")
            )

    async def run(self) -> None:
        """Send the latest state until the run has ended."""
        async with self.services.workflows.open(self._run, self._url) as display:
            async for text in display.messages():
                await self.send(text)


def _text_in(request: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = request.get(name, default)
    if isinstance(value, str) and len(value) <= _MAX_TEXT:
        return value
    raise UsageError(
        _("`{name}` must be text of at most {max_text} characters.").format(
            name=name, max_text=_MAX_TEXT
        )
    )


FEEDS: Mapping[str, type[Feed]] = MappingProxyType(
    {
        feed.kind: feed
        for feed in (JobsFeed, JobFeed, LogFeed, MetricsFeed, StartsFeed, WorkflowFeed)
    }
)
