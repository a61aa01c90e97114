"""One run of a workflow on one page: each new picture, and the last one in any case.

How a run is found and followed is ``watching.runs``'s; what a picture is, the workflows' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from submarine_jobs.errors import UsageError
from submarine_server.channel.feed import Credit, Feed, Send, Services

_LONGEST = 500


class WorkflowFeed(Feed):
    """``{kind: "workflow", run, url}``; ``url`` of the Azkaban that runs it, empty: none does."""

    kind: ClassVar[str] = "workflow"

    def __init__(
        self, services: Services, words: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, words, send, credit)
        self._run = _text_in(words, "run")
        self._url = _text_in(words, "url", "")
        if not self._run:
            raise UsageError("`run` must be the id of a run.", "See `submarine workflow history`.")

    async def run(self) -> None:
        """Send pictures until the run has ended."""
        async with self.services.runs.open(self._run, self._url) as display:
            async for text in display.texts():
                await self.send(text)


def _text_in(words: Mapping[str, Any], name: str, otherwise: str | None = None) -> str:
    value = words.get(name, otherwise)
    if isinstance(value, str) and len(value) <= _LONGEST:
        return value
    raise UsageError(f"`{name}` must be text of at most {_LONGEST} characters.")
