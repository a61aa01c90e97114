"""The kernels in containers that this server starts just now, and how far each is.

Before there is a job, nothing else knows of them; after that its view tells more.
"""

from __future__ import annotations

from submarine_jobs.display.untrusted import one_line
from submarine_kernel.remote.starts import going_on
from submarine_server.access import BaseHandler, guarded

#: Longest sentence, and most starts that are told.
WORD, MOST = 200, 100


class StartsHandler(BaseHandler):
    """``GET starts``."""

    @guarded("read")
    async def get(self) -> None:
        """See ``IKernelStart``."""
        starts = [
            {
                "kernel": start.kernel,
                "notebook": start.notebook,
                "words": one_line(start.words, WORD),
            }
            for start in going_on()[:MOST]
        ]
        self.answer({"starts": starts})


ROUTES = [(r"starts", StartsHandler)]
