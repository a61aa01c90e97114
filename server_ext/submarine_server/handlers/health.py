"""``health``: versions, and whether the cluster answers; and the answer where there is nothing.

Never waits for the cluster longer than a moment: what was found last is told at once.
"""

from __future__ import annotations

import asyncio
import contextlib

from submarine_jobs.errors import SubmarineError
from submarine_server import API, version
from submarine_server.base import ApiError, BaseHandler, api_error, guarded

#: Seconds that an answer waits for the cluster, and that the cluster's answer stands.
MOMENT = 1.5
STANDS = 10.0


class HealthHandler(BaseHandler):
    """``GET health``."""

    @guarded("read")
    async def get(self) -> None:
        """See ``IHealth``."""
        facts = {"version": version(), "api": API, "backend": None, "profile": ""}
        try:
            session = await self.core.session()
        except SubmarineError as error:
            found = api_error(error)
            problem = f"{found.error} {found.fix}".strip() if found else ""
            self.answer({**facts, "reachable": False, "problem": problem})
            return
        facts |= {"backend": session.profile.backend, "profile": session.profile.name}
        problem = "The cluster has not answered yet."
        asking = asyncio.ensure_future(self.core.shared("reachable", self._problem, STANDS))
        with contextlib.suppress(TimeoutError):
            problem = await asyncio.wait_for(asking, MOMENT)
        self.answer({**facts, "reachable": not problem, "problem": problem})

    async def _problem(self) -> str:
        """Why the cluster cannot be used, one sentence; empty: it can."""
        session = await self.core.session()
        try:
            storage, root = await self.core.call(lambda: session.backend().job_root())
            await self.core.call(storage.stat, root)
        except Exception as error:
            found = api_error(error)
            if found is None:
                raise
            return f"{found.error} {found.fix}".strip()
        return ""


class NotFoundHandler(BaseHandler):
    """Every address below the API that means nothing."""

    async def _nothing(self, *_: str) -> None:
        raise ApiError(404, "There is nothing at this address.", "docs/server.md lists them.")

    get = guarded("read")(_nothing)
    post = guarded("write")(_nothing)
    put = guarded("write")(_nothing)
    patch = guarded("write")(_nothing)
    delete = guarded("write")(_nothing)


ROUTES = [(r"health", HealthHandler)]
