"""The list of this user's jobs, from this machine's index, brought up to date on the way.

The index answers at once whatever the cluster does; a page waits only a moment for news.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, cast

from submarine_jobs.client import Session
from submarine_jobs.errors import UsageError
from submarine_jobs.model import hadoop_user
from submarine_jobs.tracking import JobQuery, Origin, bare_record, cursor_of
from submarine_runtime.protocol.states import State
from submarine_server.base import BaseHandler, guarded
from submarine_server.channel import SERVICES, Services
from submarine_server.monitor import JobsWatch
from submarine_server.service import PATIENCE, Core
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
        watch = cast("Services", self.settings[SERVICES]).jobs
        problem = "" if query.after else await self._refreshed(watch)
        session = await self.core.session()
        page = await self.core.here(page_of, self.core, session, query)
        # What the watcher saw last is finer than what is worth keeping in the index.
        board = watch.board.whole()
        seen = {row["job_id"]: row for row in board.rows}
        rows = [_newer(row, seen.get(row["job_id"])) for row in page["jobs"]]
        self.answer({**page, "jobs": rows, "problem": problem or board.problem})

    def _states(self) -> tuple[State, ...]:
        words = self.get_query_arguments("state")[: len(State)]
        try:
            return tuple(dict.fromkeys(State(word) for word in words))
        except ValueError:
            known = ", ".join(state.value for state in State)
            raise UsageError("One of the states is none.", f"There are {known}.") from None

    async def _refreshed(self, watch: JobsWatch) -> str:
        """Have the watcher look at all jobs; why that did not work (yet), one sentence."""
        asking = asyncio.ensure_future(self.core.shared("jobs", lambda: look(watch), FRESH))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asking, MOMENT)
            return ""
        return "The cluster has not answered yet: these are the jobs as they were known last."


async def look(watch: JobsWatch) -> None:
    """Wait until the watcher has looked at all jobs once more."""
    before = watch.polls
    with watch.looking():
        async with asyncio.timeout(PATIENCE):
            while watch.polls == before:
                await asyncio.sleep(0.05)


def _newer(row: Json, seen: Mapping[str, Any] | None) -> Json:
    """The watcher's row, unless the index has heard of the job's end since."""
    if seen is None or State(row["state"]).ended != State(seen["state"]).ended:
        return row
    return {**seen}


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
