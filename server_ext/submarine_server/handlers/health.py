"""Version of the server and state of the cluster; response for unknown addresses.

The request does not wait for the cluster: the last known state is returned.
"""

from __future__ import annotations

import asyncio
import contextlib

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_server.base import Answer, ApiError, BaseHandler, api_error, guarded
from submarine_server.version import API, VERSION
from submarine_server.views import HealthJson

#: Seconds to wait for the cluster, and for which its state is valid.
CLUSTER_TIMEOUT = 1.5
MAX_AGE = 10.0


class HealthHandler(BaseHandler):
    """``GET health``."""

    @guarded("read", Answer((HealthJson,)))
    async def get(self) -> None:
        """Return versions, backend, and whether the cluster answers.

        Waits for the cluster for at most 1.5 s.
        """
        facts = {"version": VERSION, "api": API, "backend": None, "profile": ""}
        try:
            session = await self.service.session()
        except SubmarineError as error:
            found = api_error(error)
            problem = f"{found.error} {found.fix}".strip() if found else ""
            self.finish_json({**facts, "reachable": False, "problem": problem})
            return
        facts |= {"backend": session.profile.backend, "profile": session.profile.name}
        problem = _("The cluster has not answered yet.")
        pending = asyncio.ensure_future(
            self.service.call_shared("reachable", self._problem, MAX_AGE)
        )
        with contextlib.suppress(TimeoutError):
            problem = await asyncio.wait_for(pending, CLUSTER_TIMEOUT)
        self.finish_json({**facts, "reachable": not problem, "problem": problem})

    async def _problem(self) -> str:
        """Return why the cluster cannot be used, one sentence; empty if it can."""
        session = await self.service.session()
        try:
            storage, root = await self.service.call(lambda: session.backend().job_root())
            await self.service.call(storage.stat, root)
        except Exception as error:
            found = api_error(error)
            if found is None:
                raise
            return f"{found.error} {found.fix}".strip()
        return ""


class NotFoundHandler(BaseHandler):
    """All unknown addresses of the REST interface."""

    async def _not_found(self, *_unused: str) -> None:
        raise ApiError(404, _("There is nothing at this address."), _("docs/server.md lists them."))

    get = guarded("read")(_not_found)
    post = guarded("write")(_not_found)
    put = guarded("write")(_not_found)
    patch = guarded("write")(_not_found)
    delete = guarded("write")(_not_found)


ROUTES = [(r"health", HealthHandler)]
