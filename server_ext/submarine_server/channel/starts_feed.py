"""The kernels in containers that this server starts just now, on one page, and how far each is.

Before there is a job, nothing else knows of them; after that its view tells more.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import ClassVar

from submarine_jobs.text import one_line
from submarine_jobs.tracking import Origin
from submarine_kernel.remote import PendingStart, list_pending, listening
from submarine_server.channel.feed import Feed

#: Seconds between two messages.
QUIET = 0.5
#: Longest sentence, and most starts that are told.
WORD, MOST = 200, 100


class StartsFeed(Feed):
    """``{kind: "starts"}``."""

    kind: ClassVar[str] = "starts"

    async def run(self) -> None:
        """Send what there is, then again after each change, for as long as the page wants it."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:  # in any thread
            with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
                loop.call_soon_threadsafe(changed.set)

        with listening(wake):
            while True:
                changed.clear()
                told = [self._told(start) for start in list_pending()[:MOST]]
                await self.send({"type": "starts", "starts": told})
                await asyncio.sleep(QUIET)
                await changed.wait()

    def _told(self, start: PendingStart) -> dict[str, str]:
        """See ``IKernelStart``; its document as the file browser knows it."""
        notebook = self.services.core.abouts.origin(Origin(start.notebook)).notebook
        words = one_line(start.status, WORD)
        return {"kernel": start.kernel, "notebook": notebook, "words": words}
