"""The job list of the user, from the local index and the latest poll.

The index does not depend on the cluster; a request waits only briefly for a poll.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, cast

from submarine_jobs.client import Session
from submarine_jobs.errors import UsageError
from submarine_jobs.tracking import JobQuery, Origin, bare_record, cursor_of
from submarine_runtime.protocol import State
from submarine_runtime.translation import _
from submarine_server.base import Answer, BaseHandler, guarded
from submarine_server.channel import SERVICES, ChannelServices
from submarine_server.monitor import JobMonitor
from submarine_server.service import TIMEOUT, JobService
from submarine_server.views import JobsPageJson, Json, row_json

#: Seconds to wait for a poll, and for which a poll is shared.
CLUSTER_TIMEOUT = 2.0
MAX_AGE = 3.0
MAX_PAGE = 500


class JobsHandler(BaseHandler):
    """``GET jobs``."""

    @guarded("read", Answer((JobsPageJson,)))
    async def get(self) -> None:
        """Return a page of the user's jobs: active ones first, then the newest."""
        query = JobQuery(
            states=self._states(),
            text=self.query_text("text", "", 100),
            limit=self.query_int("limit", 50, 1, MAX_PAGE),
            after=self.query_text("after", "", 120),
        )
        monitor = cast("ChannelServices", self.settings[SERVICES]).monitor
        problem = "" if query.after else await self._refreshed(monitor)
        session = await self.service.session()
        page = await self.service.call_local(page_of, self.service, session, query)
        # Rows of the monitor are more detailed than those of the index.
        table = monitor.table.snapshot()
        monitored = {row["job_id"]: row for row in table.rows}
        rows = [_merge(row, monitored.get(row["job_id"])) for row in page["jobs"]]
        self.finish_json({**page, "jobs": rows, "problem": problem or table.problem})

    def _states(self) -> tuple[State, ...]:
        names = self.get_query_arguments("state")[: len(State)]
        try:
            return tuple(dict.fromkeys(State(name) for name in names))
        except ValueError:
            known = ", ".join(state.value for state in State)
            raise UsageError(
                _("A state is not valid."), _("Use {known}.").format(known=known)
            ) from None

    async def _refreshed(self, monitor: JobMonitor) -> str:
        """Wait for a poll; return why the list may be outdated, one sentence."""
        pending = asyncio.ensure_future(
            self.service.call_shared("jobs", lambda: wait_for_poll(monitor), MAX_AGE)
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(pending, CLUSTER_TIMEOUT)
            return ""
        return _("The cluster has not answered yet; the list shows the last known states.")


async def wait_for_poll(monitor: JobMonitor) -> None:
    """Wait until the monitor has polled once more."""
    before = monitor.polls
    with monitor.keep_polling():
        async with asyncio.timeout(TIMEOUT):
            while monitor.polls == before:
                await asyncio.sleep(0.05)


def _merge(row: Json, monitored: Mapping[str, Any] | None) -> Json:
    """Return the monitor's row, unless only the index knows that the job has ended."""
    if monitored is None or State(row["state"]).ended != State(monitored["state"]).ended:
        return row
    return {**monitored}


def page_of(service: JobService, session: Session, query: JobQuery) -> Json:
    """Return a page of rows, their total and the cursor of the next page; reads the local index."""
    user = session.user
    own = JobQuery(query.states, query.text, user, query.limit, query.after)
    found = session.store.page(own)
    origins = session.store.origins([row.job_id for row in found.rows])
    rows = [
        row_json(
            row.record or bare_record(row),
            service.details.visible_origin(origins.get(row.job_id, Origin())),
        )
        for row in found.rows
    ]
    last = found.rows[-1] if found.more else None
    after = cursor_of(last.state, last.created, last.job_id) if last is not None else None
    return {"jobs": rows, "total": found.total, "next": after}


ROUTES: list[tuple[str, Any]] = [(r"jobs", JobsHandler)]
