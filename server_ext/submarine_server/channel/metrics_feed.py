"""The curves of one job on one page: first whole and thinned, then the samples that are new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submarine_server.channel.feed import Credit, Feed, Send, Services, job_in, number_in
from submarine_server.views import series_json


class MetricsFeed(Feed):
    """``{kind: "metrics", job, points}``."""

    kind: ClassVar[str] = "metrics"

    def __init__(
        self, services: Services, words: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, words, send, credit)
        self._job = job_in(words)
        self._points = number_in(words, "points", 2, 5000, 300)

    async def run(self) -> None:
        """Send samples until the job has ended and all are sent."""
        async with self.services.metrics.open(self._job) as reader:
            taken = await reader.after(None)
            whole = True
            while True:
                rows = taken.rows
                if rows or whole:
                    series = await self.services.core.here(series_json, rows, self._points)
                    await self.send({"type": "metrics", "series": series, "whole": whole})
                if taken.ended:
                    return
                taken, whole = await reader.after(taken), False
