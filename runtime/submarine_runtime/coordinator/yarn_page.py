"""The job on its own YARN page, and its progress in YARN's lists; in the coordinator's process.

A thread of its own, because the application master may take its time. Whatever happens to it, the
job goes on.
"""

from __future__ import annotations

import threading
from typing import Any, Mapping

from submarine_runtime.coordinator.event_loop import Conductor
from submarine_runtime.yarn import Master, Page

LOOK_SECONDS = 2.0


class YarnView:
    """The thread.

    Parameters
    ----------
    job
        What does not change: ``job_id name links``.
    """

    def __init__(self, conductor: Conductor, job: Mapping[str, Any]) -> None:
        self._conductor, self._job = conductor, dict(job)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yarn-view", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def finish(self) -> None:
        """Tell the last state; bounded."""
        self._over.set()
        self._thread.join(LOOK_SECONDS)

    def _run(self) -> None:
        try:
            page, master = Page("127.0.0.1"), Master()
            page.serve()
            master.add_page(page.url)
        except Exception as exc:
            # skein and grpc may fail in many ways, and none of them is the job's concern.
            self._note(f"There is no page on YARN: {type(exc).__name__}: {exc}"[:300])
            return
        self._note("The job is on its YARN page.")
        over = False
        while True:
            page.job = self._now()
            try:
                master.progress(page.job.get("progress"))
            except Exception:
                return  # the master is going away
            if over:
                return
            over = self._over.wait(LOOK_SECONDS)

    def _note(self, sentence: str) -> None:
        self._conductor.tell({"type": "note", "kind": "yarn_page", "detail": sentence})

    def _now(self) -> dict[str, Any]:
        record = self._conductor.status.to_json(events=False)
        chief = record["tasks"][0]
        for task in record["tasks"]:
            if task["task"] == self._conductor.play.chief.name:
                chief = task
        return {
            **self._job,
            "state": record.get("state"),
            "detail": record.get("pending") or record.get("detail"),
            "progress": record.get("progress"),
            "task": chief.get("task"),
            "host": chief.get("host"),
            "log_url": chief.get("log_url"),
        }
