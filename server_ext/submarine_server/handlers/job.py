"""One job: view, tasks, events, metrics, command, models, lineage; cancel, rerun, save its model.

Only the owner may change a job, independent of the permissions of its directory.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from submarine_jobs.client import Job, view_job
from submarine_jobs.display import sanitize
from submarine_jobs.outputs import read_metrics
from submarine_jobs.trained_models import lineage_rows
from submarine_runtime.protocol import JobRecord
from submarine_runtime.translation import _
from submarine_server.base import Answer, ApiError, BaseHandler, guarded, require_job_id
from submarine_server.service import JobService, owns
from submarine_server.views import (
    CommandJson,
    EmptyJson,
    EventsJson,
    JobViewJson,
    Json,
    LineageJson,
    MetricsJson,
    ModelsJson,
    ModelVersionJson,
    NewJobJson,
    TasksJson,
    event_json,
    model_json,
    series_json,
    task_json,
    view_json,
)

#: Seconds for which a view is shared.
MAX_AGE = 1.0
MAX_PAGE = 1000


class ViewHandler(BaseHandler):
    """``GET jobs/ID``."""

    @guarded("read", Answer((JobViewJson,)))
    async def get(self, job: str) -> None:
        """Return the data of a card."""
        job_id = require_job_id(job)
        self.finish_json(
            await self.service.call_shared(f"view {job_id}", lambda: self._view(job_id), MAX_AGE)
        )

    async def _view(self, job_id: str) -> Json:
        return await self.service.call(view_of, self.service, job_id)


def view_of(service: JobService, job_id: str) -> Json:
    """Return the current ``IJobView``; blocks."""
    job = service.find(job_id)
    view = view_job(job)
    return view_json(view, service.details.get(job, view.record))


class TasksHandler(BaseHandler):
    """``GET jobs/ID/tasks``."""

    @guarded("read", Answer((TasksJson,)))
    async def get(self, job: str) -> None:
        """Return a page of tasks in order of role and index."""
        job_id = require_job_id(job)
        offset = self.query_int("offset", 0, 0, 1_000_000)
        limit = self.query_int("limit", 100, 1, MAX_PAGE)
        found = await self.service.call_shared(
            f"tasks {job_id}", lambda: self._tasks(job_id), MAX_AGE
        )
        self.finish_json({"tasks": found[offset : offset + limit], "total": len(found)})

    async def _tasks(self, job_id: str) -> list[Json]:
        def read() -> list[Json]:
            return [task_json(task) for task in sanitize(self.service.find(job_id).record()).tasks]

        return await self.service.call(read)


class EventsHandler(BaseHandler):
    """``GET jobs/ID/events``."""

    @guarded("read", Answer((EventsJson,)))
    async def get(self, job: str) -> None:
        """Return events after number ``after``, in order of time.

        ``seq`` numbers the events of all writers, so that a page can continue.
        """
        job_id = require_job_id(job)
        after = self.query_int("after", -1, -1, 1 << 31)
        limit = self.query_int("limit", 200, 1, MAX_PAGE)
        found = await self.service.call_shared(
            f"events {job_id}", lambda: self._events(job_id), MAX_AGE
        )
        self.finish_json({"events": found[after + 1 : after + 1 + limit]})

    async def _events(self, job_id: str) -> list[Json]:
        def read() -> list[Json]:
            job = self.service.find(job_id)
            record = sanitize(job.record())
            events = record.events
            if not events:
                record.events = job.directory.events()
                events = sanitize(record).events
            events.sort(key=lambda event: event.time)
            return [{**event_json(event), "seq": seq} for seq, event in enumerate(events)]

        return await self.service.call(read)


class MetricsHandler(BaseHandler):
    """``GET jobs/ID/metrics``."""

    @guarded("read", Answer((MetricsJson,)))
    async def get(self, job: str) -> None:
        """Return the curves of one task or of all tasks."""
        job_id = require_job_id(job)
        task = self.query_text("task", "", 40)
        points = self.query_int("points", 300, 2, 5000)
        key = f"metrics {job_id} {task} {points}"
        series = await self.service.call_shared(
            key, lambda: self._series(job_id, task, points), MAX_AGE
        )
        self.finish_json({"series": series})

    async def _series(self, job_id: str, task: str, points: int) -> list[Json]:
        def read() -> list[Json]:
            return series_json(
                read_metrics(self.service.find(job_id).directory, task or None), points
            )

        return await self.service.call(read)


class CommandHandler(BaseHandler):
    """``GET jobs/ID/command``."""

    @guarded("read", Answer((CommandJson,)))
    async def get(self, job: str) -> None:
        """Return the command that runs the job again."""
        job_id = require_job_id(job)

        def read() -> str:
            found: Job = self.service.find(job_id)
            return self.service.details.get(found, found.record()).command

        command = await self.service.call(read)
        if not command:
            raise ApiError(
                404,
                _("The command of {job_id} is not known.").format(job_id=job_id),
                _("Rerun runs the job again."),
            )
        self.finish_json({"command": command})


#: Seconds to wait for immediate errors of a cancel, which takes longer in total.
CANCEL_WAIT = 2.0
#: Timeouts in seconds: a cancel waits for agent and cluster, a rerun uploads files.
CANCEL_TIMEOUT, SUBMIT_TIMEOUT = 90.0, 120.0


class CancelHandler(BaseHandler):
    """``POST jobs/ID/cancel``."""

    @guarded("execute", Answer((EmptyJson,), 202))
    async def post(self, job: str) -> None:
        """Cancel a job. The response is 202; the views of the job show the result."""
        job_id = require_job_id(job)
        why = self.body_text(self.body(), "why")
        found = await self.service.call(self._cancellable, job_id)
        cancelling = asyncio.ensure_future(
            self.service.call(found.cancel, why, timeout=CANCEL_TIMEOUT)
        )
        cancelling.add_done_callback(self._log_failure)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(cancelling), CANCEL_WAIT)
        self.finish_json({}, 202)

    def _cancellable(self, job_id: str) -> Job:
        found = self.service.find(job_id)
        record = found.record()
        require_owner(found, record, _("cancel it"))
        if record.state.ended and not record.state.value == "LOST":
            raise ApiError(
                409,
                _("{job_id} has ended already: {state}.").format(
                    job_id=job_id, state=record.state.value
                ),
            )
        return found

    def _log_failure(self, cancelling: asyncio.Future[Any]) -> None:
        if not cancelling.cancelled() and cancelling.exception() is not None:
            self.log.warning("submarine: a job was not cancelled: %.300s", cancelling.exception())


class RerunHandler(BaseHandler):
    """``POST jobs/ID/rerun``."""

    @guarded("execute", Answer((NewJobJson,), 201))
    async def post(self, job: str) -> None:
        """Submit the job again; return the id of the new job."""
        job_id = require_job_id(job)
        resume = self.body_flag(self.body(), "resume")

        def submit() -> str:
            found = self.service.find(job_id)
            require_owner(found, found.record(), _("run it again"))
            return found.rerun(resume=resume).id

        self.finish_json({"job_id": await self.service.call(submit, timeout=SUBMIT_TIMEOUT)}, 201)


#: Timeout in seconds for copying a model of several GB to the job directory.
SAVE_TIMEOUT = 600.0


class ModelsHandler(BaseHandler):
    """``jobs/ID/models``."""

    @guarded("read", Answer((ModelsJson,)))
    async def get(self, job: str) -> None:
        """Return the saved versions of the model, the oldest first."""
        job_id = require_job_id(job)

        def read() -> list[ModelVersionJson]:
            return [model_json(version) for version in self.service.find(job_id).models()]

        self.finish_json({"models": await self.service.call(read)})

    @guarded("execute", Answer((ModelVersionJson,), 201))
    async def post(self, job: str) -> None:
        """Save the current model while the training continues."""
        job_id = require_job_id(job)
        name = self.body_text(self.body(), "name", 100)

        def save() -> ModelVersionJson:
            found = self.service.find(job_id)
            require_owner(found, found.record(), _("save its model"))
            return model_json(found.save_model(name))

        self.finish_json(await self.service.call(save, timeout=SAVE_TIMEOUT), 201)


class LineageHandler(BaseHandler):
    """``GET jobs/ID/lineage``."""

    @guarded("read", Answer((LineageJson,)))
    async def get(self, job: str) -> None:
        """Return where a saved version, or without one the final model, comes from."""
        job_id = require_job_id(job)
        version = self.query_text("version", "", 100)

        def read() -> LineageJson:
            lineage = self.service.find(job_id).lineage(version)
            return {"version": version, "rows": lineage_rows(lineage)}

        self.finish_json(await self.service.call(read))


def require_owner(job: Job, record: JobRecord, action: str) -> None:
    """Raise ApiError 403 unless the job belongs to this user; ``action`` completes the message."""
    if not owns(job, record):
        owner = record.user[:80] or _("another user")
        raise ApiError(
            403,
            _("{id} is a job of {owner}: only its owner may {action}.").format(
                id=job.id, owner=owner, action=action
            ),
            _("On the command line, `submarine` with the same verb asks for confirmation."),
        )


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/([^/]+)", ViewHandler),
    (r"jobs/([^/]+)/tasks", TasksHandler),
    (r"jobs/([^/]+)/events", EventsHandler),
    (r"jobs/([^/]+)/metrics", MetricsHandler),
    (r"jobs/([^/]+)/command", CommandHandler),
    (r"jobs/([^/]+)/cancel", CancelHandler),
    (r"jobs/([^/]+)/rerun", RerunHandler),
    (r"jobs/([^/]+)/models", ModelsHandler),
    (r"jobs/([^/]+)/lineage", LineageHandler),
]
