"""Show the job on its own YARN page through a helper process (``yarn.page``).

Only if skein started this container. The helper is a separate process, because skein needs grpc,
which the agent does not load. The job continues if the helper fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, Mapping

from submarine_runtime.record import Status
from submarine_runtime.translation import _

UPDATE_SECONDS = 2.0
_END_SECONDS = 2.0


class YarnPage:
    """The helper, and the thread that sends it the state of the job.

    Parameters
    ----------
    archive
        Path of the runtime's zip.
    job
        Constant fields: ``job_id name``.
    """

    def __init__(self, archive: str, status: Status, job: Mapping[str, Any]) -> None:
        self._archive = archive
        self._status = status
        self._job = dict(job)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="yarn-page")

    def start(self) -> None:
        """Start helper and thread; returns at once."""
        self._thread.start()

    def finish(self) -> None:
        """Send the last state and end the helper."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            helper = subprocess.Popen(
                [sys.executable, "-I", self._archive, "page"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as exc:
            self._status.event(
                "yarn_page", _("There is no page on YARN: {strerror}").format(strerror=exc.strerror)
            )
            return
        try:
            self._communicate(helper)
        except (OSError, ValueError):
            pass  # The helper has ended; the job does not need it.
        finally:
            with suppress(OSError):
                if helper.stdin is not None:
                    helper.stdin.close()
            try:
                helper.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                helper.kill()

    def _communicate(self, helper: subprocess.Popen[bytes]) -> None:
        assert helper.stdin is not None
        assert helper.stdout is not None
        answer = json.loads(helper.stdout.readline(1 << 12) or b'{"why": "the helper ended"}')
        if not answer.get("ok"):
            why = str(answer.get("why", ""))[:300]
            self._status.event("yarn_page", _("There is no page on YARN: {why}").format(why=why))
            return
        self._status.event("yarn_page", _("The job is on its YARN page."))
        sent: dict[str, Any] = {}
        over = False
        while True:
            now = self._state()
            if now != sent:
                helper.stdin.write(json.dumps(now).encode() + b"\n")
                helper.stdin.flush()
                sent = now
            if over:
                return
            over = self._over.wait(UPDATE_SECONDS)

    def _state(self) -> dict[str, Any]:
        record = self._status.to_json(events=False)
        task = (record.get("tasks") or [{}])[0]
        progress = record.get("progress")
        return {
            **self._job,
            "state": record.get("state"),
            "detail": record.get("detail"),
            "progress": None if progress is None else round(progress, 2),
            # Current links, with the host and port of the program.
            "links": record.get("links") or {},
            "task": task.get("task"),
            "host": task.get("host"),
            "log_url": task.get("log_url"),
        }


def page_of(status: Status, job: Mapping[str, Any]) -> YarnPage | None:
    """Return the page of this job; None if skein did not start the container."""
    archive = os.path.abspath(sys.argv[0])
    if not os.environ.get("SKEIN_APPMASTER_ADDRESS") or not os.path.isfile(archive):
        return None
    return YarnPage(archive, status, job)
