"""The list of this user's jobs, from this machine's index, brought up to date on the way.

The index answers at once whatever the cluster does; a page waits only a moment for news.
"""

from __future__ import annotations

import asyncio
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.observing import bare_record
from submarine_jobs.profile import hadoop_user
from submarine_jobs.session import Session
from submarine_jobs.store import Origin
from submarine_jobs.store_query import JobQuery, cursor_of
from submarine_runtime.protocol.states import State
from submarine_server.access import BaseHandler, guarded
from submarine_server.core import Core
from submarine_server.failures import api_error
from submarine_server.views import Json, row_json

#: Seconds that a page waits for the cluster, and for which what it said is good.
MOMENT = 2.0
FRESH = 3.0
MAX_PAGE = 500


class JobsHandler(BaseHandler):
    """``GET jobs``."""

    @guarded("read")
    async def get(self) -> None:
        """See ``IJobsPage``."""
        query = JobQuery(
            states=self._states(),
            text=self.query("text", "", 100),
            limit=self.number("limit", 50, 1, MAX_PAGE),
            after=self.query("after", "", 120),
        )
        problem = "" if query.after else await self._refreshed()
        session = await self.core.session()
        page = await self.core.here(page_of, self.core, session, query)
        self.answer({**page, "problem": problem})

    def _states(self) -> tuple[State, ...]:
        words = self.get_query_arguments("state")[: len(State)]
        try:
            return tuple(dict.fromkeys(State(word) for word in words))
        except ValueError:
            known = ", ".join(state.value for state in State)
            raise UsageError("One of the states is none.", f"There are {known}.") from None

    async def _refreshed(self) -> str:
        """Bring the index up to date; why that did not work (yet), one sentence."""
        asking = asyncio.ensure_future(self.core.shared("jobs", self._refresh, FRESH))
        try:
            return await asyncio.wait_for(asyncio.shield(asking), MOMENT)
        except TimeoutError:
            return "The cluster has not answered yet: these are the jobs as they were known last."

    async def _refresh(self) -> str:
        try:
            session = await self.core.session()
            await self.core.call(session.jobs)
        except SubmarineError as error:
            found = api_error(error)
            return f"{found.error} {found.fix}".strip() if found else ""
        except TimeoutError:
            return "The cluster has not answered in time."
        return ""


def page_of(core: Core, session: Session, query: JobQuery) -> Json:
    """A page of rows with their total and where the next begins; blocks, but for no cluster."""
    me = hadoop_user(session.profile.user)
    mine = JobQuery(query.states, query.text, me, query.limit, query.after)
    found = session.store.page(mine)
    origins = session.store.origins([row.job_id for row in found.rows])
    rows = [
        row_json(
            row.record or bare_record(row), core.abouts.origin(origins.get(row.job_id, Origin()))
        )
        for row in found.rows
    ]
    last = found.rows[-1] if found.more else None
    after = cursor_of(last.state, last.created, last.job_id) if last is not None else None
    return {"jobs": rows, "total": found.total, "next": after}


ROUTES: list[tuple[str, Any]] = [(r"jobs", JobsHandler)]
