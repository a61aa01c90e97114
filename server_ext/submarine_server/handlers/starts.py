"""The kernels in containers that this server starts just now, and how far each is.

Before there is a job, nothing else knows of them; after that its view tells more.
"""

from __future__ import annotations

from submarine_jobs.display.untrusted import one_line
from submarine_jobs.store import Origin
from submarine_kernel.remote.starts import Start, going_on
from submarine_server.access import BaseHandler, guarded

#: Longest sentence, and most starts that are told.
WORD, MOST = 200, 100


class StartsHandler(BaseHandler):
    """``GET starts``."""

    @guarded("read")
    async def get(self) -> None:
        """See ``IKernelStart``."""
        self.answer({"starts": [self._told(start) for start in going_on()[:MOST]]})

    def _told(self, start: Start) -> dict[str, str]:
        """A start, with its document as the file browser knows it."""
        notebook = self.core.abouts.origin(Origin(start.notebook)).notebook
        words = one_line(start.words, WORD)
        return {"kernel": start.kernel, "notebook": notebook, "words": words}


ROUTES = [(r"starts", StartsHandler)]
