"""Displayed workflow runs: one observation and one encoded message per run, for all connections.

A display starts with the first connection that shows the run and ends with the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_server.displays.jobs import Display
from submarine_server.displays.shared import SharedPool
from submarine_workflows.display import MIME_TYPE
from submarine_workflows.notebook import RunWatcher, find_run

if TYPE_CHECKING:
    from submarine_server.service import JobService
    from submarine_workflows.notebook import Source

log = logging.getLogger(__name__)

#: Maximum number of observed runs; the oldest are dropped.
MAX_RUNS = 200

Key = tuple[str, str]


class WorkflowDisplays:
    """Displayed runs of a server: one thread for local runs and one for Azkaban, while in use."""

    def __init__(self, service: JobService) -> None:
        self._service = service
        self._shared = SharedPool(Display, self._work, _is_stale)
        self._local, self._remote = RunWatcher(MAX_RUNS), RunWatcher(MAX_RUNS)

    def open(self, run: str, url: str) -> AbstractAsyncContextManager[Display]:
        """Return a context manager with the display of a run.

        Parameters
        ----------
        url
            URL of the Azkaban server that runs it; empty for this machine.
        """
        return self._shared.open((run, url))

    async def _work(self, key: Key, display: Display) -> None:
        run, url = key
        try:
            source = await self._service.call_local(self._find, run, url)
            await self._follow(display, source, self._remote if url else self._local)
        except (SubmarineError, TimeoutError) as error:
            display.fail(_user_error(error))
        except Exception as error:
            log.exception("the run %s cannot be shown", run)
            display.fail(error)

    def _find(self, run: str, url: str) -> Source:
        return find_run(run, url, self._service.open_session().profile.state_dir)

    async def _follow(self, display: Display, source: Source, watcher: RunWatcher) -> None:
        """Show each new state until the run has ended."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def call_in_loop(
            call: Callable[..., None], *args: object
        ) -> None:  # called in the watcher's thread
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(call, *args)

        def end(error: SubmarineError | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        watched_run = watcher.watch(
            source,
            lambda picture: call_in_loop(display.show, _message(picture)),
            lambda error: call_in_loop(end, error),
        )
        try:
            await done
            display.end()
        finally:
            watched_run.stop()


def _is_stale(display: Display) -> bool:
    """Return whether a new connection must find the run again: it may have been resumed."""
    return display.error is not None or display.ended


def _message(picture: Mapping[str, Any]) -> dict[str, object]:
    return {
        "type": "workflow",
        "time": picture[MIME_TYPE]["time"],
        "html": picture["text/html"],
    }


def _user_error(error: Exception) -> Exception:
    """Report all errors as usage errors, so that the page does not retry."""
    return UsageError(error.message, error.fix) if isinstance(error, SubmarineError) else error
