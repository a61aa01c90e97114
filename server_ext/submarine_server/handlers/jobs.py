"""The job list of the user, from the local index and the latest poll; submission of a job.

The index does not depend on the cluster; a request for the list waits only briefly for a poll.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, cast

from jupyter_server.utils import url_path_join

from submarine_jobs.client import Session
from submarine_jobs.errors import UsageError
from submarine_jobs.program import MAX_BYTES
from submarine_jobs.tracking import JobQuery, Origin, bare_record, cursor_of
from submarine_runtime.protocol import State
from submarine_runtime.translation import _
from submarine_server.base import Answer, ApiError, BaseHandler, guarded
from submarine_server.channel import SERVICES, ChannelServices
from submarine_server.monitor import JobMonitor
from submarine_server.service import TIMEOUT, JobService, Submissions, parse_submission
from submarine_server.views import JobsPageJson, Json, SubmissionFormJson, SubmittedJson, row_json

#: Seconds to wait for a poll, and for which a poll is shared.
CLUSTER_TIMEOUT = 2.0
MAX_AGE = 3.0
MAX_PAGE = 500
#: Limits in bytes: options of a submission, and the whole request; the number of requests above
#: ``SMALL_SUBMISSION``, or of unknown size, that are received at once.
MAX_OPTIONS = 64 << 10
MAX_SUBMISSION = MAX_BYTES + MAX_OPTIONS + (64 << 10)
SMALL_SUBMISSION = 1 << 20
MAX_RECEIVING = 4
#: Key of the ``Submissions`` in the settings of the server.
SUBMISSIONS = "submarine_submissions"


class JobsHandler(BaseHandler):
    """``jobs``."""

    #: Bodies of submissions that are being received.
    _receiving = 0
    _counted = False

    @property
    def max_body(self) -> int:
        """See ``BaseHandler``; a submission may have a bundle."""
        return MAX_SUBMISSION if self.request.method == "POST" else super().max_body

    async def prepare(self, *, _redirect_to_login: bool = False) -> None:
        """See ``BaseHandler``; receive a few bundles at once, of logged-in users only."""
        await super().prepare()
        if self.request.method != "POST":
            return
        if not self.current_user:
            raise ApiError(403, _("You are not logged in to this server."), _("Log in first."))
        announced = self.request.headers.get("Content-Length")
        if announced is not None and int(announced) <= SMALL_SUBMISSION:
            return
        if JobsHandler._receiving >= MAX_RECEIVING:
            raise ApiError(
                503,
                _("{number} large submissions are already being received.").format(
                    number=MAX_RECEIVING
                ),
                _("Try again in a minute."),
            )
        JobsHandler._receiving += 1
        self._counted = True

    def on_finish(self) -> None:
        """See ``RequestHandler``."""
        self._release()

    def on_connection_close(self) -> None:
        """See ``RequestHandler``; the client has ended the connection."""
        self._release()

    def _release(self) -> None:
        if self._counted:
            self._counted = False
            JobsHandler._receiving -= 1

    @guarded(
        "execute",
        Answer(
            (SubmittedJson,), 201, form=SubmissionFormJson, request_headers=("Idempotency-Key",)
        ),
    )
    async def post(self) -> None:
        """Submit a job with the options of `run` and the program's files; return its id.

        A request with the header `Idempotency-Key` submits one job, however often it is sent.
        """
        form = self.form({"options": MAX_OPTIONS, "bundle": MAX_BYTES})
        options = form.get("options", b"").decode("utf-8", "replace")
        request_id = self.request.headers.get("Idempotency-Key", "")
        submission = await self.service.call_local(
            parse_submission, options, form.pop("bundle", None), request_id
        )
        self._release()
        submissions = cast("Submissions", self.settings[SUBMISSIONS])
        found = await submissions.submit(submission)
        self.set_header("Location", url_path_join(self.request.path, found.job_id))
        answer: SubmittedJson = {
            "job_id": found.job_id,
            "repeated": found.repeated,
            "messages": list(found.messages),
        }
        self.finish_json(answer, 201)

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
