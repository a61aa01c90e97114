"""Saved versions of a job's model: which there are, and one more."""

from __future__ import annotations

from typing import Any

from submarine_server.base import BaseHandler, checked_job_id, guarded
from submarine_server.service import demand_mine
from submarine_server.views import Json, model_json

#: Seconds for saving: a model of some GB goes to the job directory.
SAVE = 600.0


class ModelsHandler(BaseHandler):
    """``jobs/ID/models``."""

    @guarded("read")
    async def get(self, job: str) -> None:
        """See ``IModelVersion``; the oldest first."""
        job_id = checked_job_id(job)

        def read() -> list[Json]:
            return [model_json(version) for version in self.core.find(job_id).models()]

        self.answer({"models": await self.core.call(read)})

    @guarded("execute")
    async def post(self, job: str) -> None:
        """Save the model as it is now; training goes on."""
        job_id = checked_job_id(job)
        name = self.text_in(self.body(), "name", 100)

        def save() -> Json:
            found = self.core.find(job_id)
            demand_mine(found, found.record(), "save its model")
            return model_json(found.save_model(name))

        self.answer(await self.core.call(save, timeout=SAVE), 201)


ROUTES: list[tuple[str, Any]] = [(r"jobs/([^/]+)/models", ModelsHandler)]
