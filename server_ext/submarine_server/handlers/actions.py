"""Acts on one job: cancel, rerun. Only its owner's, whatever the directory's permissions allow."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from submarine_jobs.client import Job
from submarine_server.base import ApiError, BaseHandler, checked_job_id, guarded
from submarine_server.service import demand_mine

#: Seconds that an answer waits for what goes wrong at once; ending a job takes longer than that.
AT_ONCE = 2.0
#: Seconds for the whole: a cancel waits for agent and cluster, a rerun uploads.
CANCEL, SUBMIT = 90.0, 120.0


class CancelHandler(BaseHandler):
    """``POST jobs/ID/cancel``."""

    @guarded("execute")
    async def post(self, job: str) -> None:
        """End a job: 202, as soon as that is under way; what becomes of it is seen in its view."""
        job_id = checked_job_id(job)
        why = self.text_in(self.body(), "why")
        found = await self.core.call(self._mine, job_id)
        ending = asyncio.ensure_future(self.core.call(found.cancel, why, timeout=CANCEL))
        ending.add_done_callback(self._told)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(ending), AT_ONCE)
        self.answer({}, 202)

    def _mine(self, job_id: str) -> Job:
        found = self.core.find(job_id)
        record = found.record()
        demand_mine(found, record, "cancel it")
        if record.state.ended and not record.state.value == "LOST":
            raise ApiError(409, f"{job_id} has ended already: {record.state.value}.")
        return found

    def _told(self, ending: asyncio.Future[Any]) -> None:
        if not ending.cancelled() and ending.exception() is not None:
            self.log.warning("submarine: a cancel did not go through: %.300s", ending.exception())


class RerunHandler(BaseHandler):
    """``POST jobs/ID/rerun``."""

    @guarded("execute")
    async def post(self, job: str) -> None:
        """Submit the same once more; the new job's id."""
        job_id = checked_job_id(job)
        resume = self.flag_in(self.body(), "resume")

        def submit() -> str:
            found = self.core.find(job_id)
            demand_mine(found, found.record(), "run it again")
            return found.rerun(resume=resume).id

        self.answer({"job_id": await self.core.call(submit, timeout=SUBMIT)}, 201)


ROUTES: list[tuple[str, Any]] = [
    (r"jobs/([^/]+)/cancel", CancelHandler),
    (r"jobs/([^/]+)/rerun", RerunHandler),
]
