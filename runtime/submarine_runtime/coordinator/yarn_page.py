"""The job on its own YARN page, and its progress in YARN's lists.

A separate thread calls the application master, which may answer slowly. A failure does not affect
the job.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Mapping

from submarine_runtime.coordinator.machine import JobState
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.translation import _
from submarine_runtime.yarn import ApplicationMaster, PageServer

UPDATE_SECONDS = 2.0


class YarnPageThread:
    """Update the page until the job ends.

    Parameters
    ----------
    post
        Posts a message to the event loop.
    constant
        Fields that do not change: ``job_id name links``.
    """

    def __init__(
        self,
        job: JobState,
        status: JobStatus,
        post: Callable[[dict[str, Any]], None],
        constant: Mapping[str, Any],
    ) -> None:
        self._job, self._status, self._post, self._constant = job, status, post, dict(constant)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yarn-page", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Show the last state; waits a limited time."""
        self._over.set()
        self._thread.join(UPDATE_SECONDS)

    def _run(self) -> None:
        try:
            page, master = PageServer("127.0.0.1"), ApplicationMaster()
            page.serve()
            master.add_page(page.url)
        except Exception as exc:
            # skein and grpc raise many exceptions; the job continues without a page.
            self._add_event(
                _("There is no page on YARN: {name}: {error}").format(
                    name=type(exc).__name__, error=exc
                )[:300]
            )
            return
        self._add_event(_("The job is on its YARN page."))
        over = False
        while True:
            page.job = self._fields()
            try:
                master.set_progress(page.job.get("progress"))
            except Exception:
                return  # The master is ending.
            if over:
                return
            over = self._over.wait(UPDATE_SECONDS)

    def _add_event(self, sentence: str) -> None:
        self._post({"type": "note", "kind": "yarn_page", "detail": sentence})

    def _fields(self) -> dict[str, Any]:
        record = self._status.to_json(events=False)
        chief = record["tasks"][0]
        for task in record["tasks"]:
            if task["task"] == self._job.chief.name:
                chief = task
        return {
            **self._constant,
            "state": record.get("state"),
            "detail": record.get("pending") or record.get("detail"),
            "progress": record.get("progress"),
            "task": chief.get("task"),
            "host": chief.get("host"),
            "log_url": chief.get("log_url"),
        }
