"""Keep the job's page on YARN up to date, in a thread.

The page of a coordinator is in its process, which has skein. The agent of a single task starts a
helper process, because it does not load gRPC. A failure does not affect the job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, Callable, Mapping, Protocol

from submarine_runtime.translation import _

UPDATE_SECONDS = 2.0
_END_SECONDS = 2.0


class Page(Protocol):
    """A page that is shown on YARN."""

    def update(self, job: Mapping[str, Any]) -> None:
        """Show the fields of ``render_page``; raises any exception if the page is lost."""

    def close(self) -> None:
        """End the page."""


class PageError(Exception):
    """There can be no page; the message is one sentence."""


class HelperPage:
    """The page in a helper process, the verb ``page``.

    Parameters
    ----------
    archive
        Path of the runtime's zip.
    ports
        Range of the page's port, ``LOW-HIGH``; empty: any.

    Raises
    ------
    PageError
        If there can be no page.
    """

    def __init__(self, archive: str, ports: str = "") -> None:
        self._sent: Mapping[str, Any] = {}
        try:
            self._helper = subprocess.Popen(
                [sys.executable, "-I", archive, "page", *([ports] if ports else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as exc:
            raise PageError(exc.strerror) from exc
        assert self._helper.stdin is not None
        assert self._helper.stdout is not None
        self._input = self._helper.stdin
        answer = json.loads(self._helper.stdout.readline(1 << 12) or b'{"why": "the helper ended"}')
        if not answer.get("ok"):
            self.close()
            raise PageError(str(answer.get("why", "")))

    def update(self, job: Mapping[str, Any]) -> None:
        """See ``Page.update``."""
        if job != self._sent:
            self._input.write(json.dumps(job).encode() + b"\n")
            self._input.flush()
            self._sent = job

    def close(self) -> None:
        """See ``Page.close``."""
        with suppress(OSError):
            self._input.close()
        try:
            self._helper.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._helper.kill()


class PageThread:
    """Update the page until the job ends.

    Parameters
    ----------
    open_page
        Opens the page; raises any exception if there can be none.
    record
        Returns the job's record as JSON values.
    chief
        Name of the task that the page shows.
    report
        Called with a sentence for the job's events.
    """

    def __init__(
        self,
        open_page: Callable[[], Page],
        record: Callable[[], Mapping[str, Any]],
        chief: str,
        report: Callable[[str], None],
    ) -> None:
        self._open, self._record, self._chief, self._report = open_page, record, chief, report
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yarn-page", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Show the last state; waits a limited time."""
        self._over.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        try:
            page = self._open()
        except Exception as exc:  # skein and grpc raise many exceptions.
            why = str(exc) if isinstance(exc, PageError) else f"{type(exc).__name__}: {exc}"
            self._report(_("There is no page on YARN: {why}").format(why=why[:300]))
            return
        self._report(_("The job is on its YARN page."))
        over = False
        try:
            while True:
                page.update(_fields(self._record(), self._chief))
                if over:
                    return
                over = self._over.wait(UPDATE_SECONDS)
        except Exception:
            return  # The master is ending.
        finally:
            page.close()


def skein_started_container() -> bool:
    """Return whether skein started this container, so that there may be a page."""
    return bool(os.environ.get("SKEIN_APPMASTER_ADDRESS"))


def _fields(record: Mapping[str, Any], chief: str) -> dict[str, Any]:
    """Return the fields of ``render_page``."""
    tasks = record.get("tasks") or [{}]
    task = next((one for one in tasks if one.get("task") == chief), tasks[0])
    progress = record.get("progress")
    return {
        "job_id": record.get("job_id"),
        "name": record.get("name"),
        "state": record.get("state"),
        "detail": record.get("pending") or record.get("detail"),
        "progress": None if progress is None else round(progress, 2),
        # Current links, with the host and port of the program.
        "links": record.get("links") or {},
        "task": task.get("task"),
        "host": task.get("host"),
        "log_url": task.get("log_url"),
    }
