"""One job: its view, tasks, events and metrics. Does not act on it (``actions``)."""

from __future__ import annotations

from typing import Any

from submarine_jobs.client import Job, view_job
from submarine_jobs.display import tame
from submarine_jobs.outputs import read_metrics
from submarine_server.base import ApiError, BaseHandler, checked_job_id, guarded
from submarine_server.service import Core
from submarine_server.views import Json, event_json, series_json, task_json, view_json

#: Seconds for which one view is good for all who ask.
FRESH = 1.0
MAX_PAGE = 1000


class ViewHandler(BaseHandler):
    """``GET jobs/ID``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """See ``IJobView``."""
        job_id = checked_job_id(job)
        self.answer(await self.core.shared(f"view {job_id}", lambda: self._view(job_id), FRESH))

    async def _view(self, job_id: str) -> Json:
        return await self.core.call(view_of, self.core, job_id)


def view_of(core: Core, job_id: str) -> Json:
    """``IJobView`` of a job as it is now; blocks."""
    job = core.find(job_id)
    view = view_job(job)
    return view_json(view, core.abouts.of(job, view.record))


class TasksHandler(BaseHandler):
    """``GET jobs/ID/tasks``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """A page of tasks in order of role and index."""
        job_id = checked_job_id(job)
        offset = self.number("offset", 0, 0, 1_000_000)
        limit = self.number("limit", 100, 1, MAX_PAGE)
        found = await self.core.shared(f"tasks {job_id}", lambda: self._tasks(job_id), FRESH)
        self.answer({"tasks": found[offset : offset + limit], "total": len(found)})

    async def _tasks(self, job_id: str) -> list[Json]:
        def read() -> list[Json]:
            return [task_json(task) for task in tame(self.core.find(job_id).record()).tasks]

        return await self.core.call(read)


class EventsHandler(BaseHandler):
    """``GET jobs/ID/events``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """Events after the one numbered ``after`` in the order of their time.

        ``seq`` counts through all writers here, so that a page can say where it stopped.
        """
        job_id = checked_job_id(job)
        after = self.number("after", -1, -1, 1 << 31)
        limit = self.number("limit", 200, 1, MAX_PAGE)
        found = await self.core.shared(f"events {job_id}", lambda: self._events(job_id), FRESH)
        self.answer({"events": found[after + 1 : after + 1 + limit]})

    async def _events(self, job_id: str) -> list[Json]:
        def read() -> list[Json]:
            job = self.core.find(job_id)
            record = tame(job.record())
            events = record.events
            if not events:
                record.events = job.directory.events()
                events = tame(record).events
            events.sort(key=lambda event: event.time)
            return [{**event_json(event), "seq": seq} for seq, event in enumerate(events)]

        return await self.core.call(read)


class MetricsHandler(BaseHandler):
    """``GET jobs/ID/metrics``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """See ``ISeries``; of one task, or of all."""
        job_id = checked_job_id(job)
        task = self.query("task", "", 40)
        points = self.number("points", 300, 2, 5000)
        key = f"metrics {job_id} {task} {points}"
        series = await self.core.shared(key, lambda: self._series(job_id, task, points), FRESH)
        self.answer({"series": series})

    async def _series(self, job_id: str, task: str, points: int) -> list[Json]:
        def read() -> list[Json]:
            return series_json(read_metrics(self.core.find(job_id).directory, task or None), points)

        return await self.core.call(read)


class CommandHandler(BaseHandler):
    """``GET jobs/ID/command``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """The words that would run it again."""
        job_id = checked_job_id(job)

        def read() -> str:
            found: Job = self.core.find(job_id)
            return self.core.abouts.of(found, found.record()).command

        command = await self.core.call(read)
        if not command:
            raise ApiError(404, f"Nothing tells how {job_id} was run.", "Rerun repeats it.")
        self.answer({"command": command})


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/([^/]+)", ViewHandler),
    (r"jobs/([^/]+)/tasks", TasksHandler),
    (r"jobs/([^/]+)/events", EventsHandler),
    (r"jobs/([^/]+)/metrics", MetricsHandler),
    (r"jobs/([^/]+)/command", CommandHandler),
]
