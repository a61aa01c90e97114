"""The runs of workflows that are on display: one look a run, one text of it for all pages.

A display begins with the first page that shows the run and ends with the last. How news of a run
are had and how it is drawn is the workflows' own; what a page gets is ``channel.workflow_feed``'s.
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
from submarine_server.displays.shared import Shared
from submarine_workflows.display import MIME_TYPE
from submarine_workflows.notebook import RunWatcher, find_run

if TYPE_CHECKING:
    from submarine_server.service import Core
    from submarine_workflows.notebook import Source

log = logging.getLogger(__name__)

#: Runs of one server that are looked at; older ones stay as they are then.
MOST = 200

Key = tuple[str, str]


class RunDisplays:
    """All displays of a server: two threads, one for each place of runs, while somebody looks."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._shared = Shared(Display, self._work, _is_over)
        self._here, self._distant = RunWatcher(MOST), RunWatcher(MOST)

    def open(self, run: str, url: str) -> AbstractAsyncContextManager[Display]:
        """The display of a run, while a page shows it.

        Parameters
        ----------
        url
            Of the Azkaban that runs it; empty: this machine does.
        """
        return self._shared.open((run, url))

    async def _work(self, key: Key, display: Display) -> None:
        run, url = key
        try:
            source = await self._core.here(self._find, run, url)
            await self._follow(display, source, self._distant if url else self._here)
        except (SubmarineError, TimeoutError) as error:
            display.fail(_in_words(error))
        except Exception as error:
            log.exception("the run %s cannot be shown", run)
            display.fail(error)

    def _find(self, run: str, url: str) -> Source:
        return find_run(run, url, self._core.session_now().profile.state_dir)

    async def _follow(self, display: Display, source: Source, watcher: RunWatcher) -> None:
        """Show each new picture until the run has ended."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def in_loop(call: Callable[..., None], *args: object) -> None:  # in the watcher's thread
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(call, *args)

        def end(error: SubmarineError | None) -> None:
            if over.done():
                return
            if error is None:
                over.set_result(None)
            else:
                over.set_exception(error)

        watched = watcher.watch(
            source,
            lambda picture: in_loop(display.show, _message(picture)),
            lambda error: in_loop(end, error),
        )
        try:
            await over
            display.end()
        finally:
            watched.stop()


def _is_over(display: Display) -> bool:
    """Whether who comes now looks for the run again: it may have been resumed."""
    return display.error is not None or display.ended


def _message(picture: Mapping[str, Any]) -> dict[str, object]:
    return {
        "type": "workflow",
        "time": picture[MIME_TYPE]["time"],
        "html": picture["text/html"],
    }


def _in_words(error: Exception) -> Exception:
    """What is wrong; what asking again would not mend is a mistake of the question's."""
    return UsageError(error.message, error.fix) if isinstance(error, SubmarineError) else error
