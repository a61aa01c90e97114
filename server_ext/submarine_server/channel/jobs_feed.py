"""The jobs list of one page: first whole, then the rows that have changed; the newest count.

Whole once more where the rows of before are no more.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from submarine_server.channel.feed import Feed

#: Seconds between two messages.
QUIET = 0.3


class JobsFeed(Feed):
    """``{kind: "jobs"}``."""

    kind: ClassVar[str] = "jobs"

    async def run(self) -> None:
        """Send what there is, then what is new, for as long as the page wants it."""
        board = self.services.jobs.board
        with self.services.jobs.looking():
            await board.wait(0)
            part = board.whole()
            while True:
                await self.send(
                    {
                        "type": "jobs",
                        "whole": part.whole,
                        "rows": part.rows,
                        "total": part.total,
                        "problem": part.problem,
                    }
                )
                await asyncio.sleep(QUIET)
                await board.wait(part.number)
                part = board.since(part.number)
