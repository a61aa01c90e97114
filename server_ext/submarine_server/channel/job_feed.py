"""One job on one page: each new view, the newest where the page is slow, the last one in any case.

What a view holds is ``views``'; how often one is made is the core's ``watch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submarine_server.channel.feed import Credit, Feed, Send, Services, job_in


class JobFeed(Feed):
    """``{kind: "job", job}``."""

    kind: ClassVar[str] = "job"

    def __init__(
        self, services: Services, words: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, words, send, credit)
        self._job = job_in(words)

    async def run(self) -> None:
        """Send views until the job has ended."""
        async with self.services.displays.open(self._job) as display:
            async for text in display.texts():
                await self.send(text)
