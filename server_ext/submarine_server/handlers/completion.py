"""What may stand in the place of the word that is being typed: verbs, options, queues, job ids.

The words of files are left out: the server's directory is not the notebook's, and who may ask about
jobs need not be shown what lies on its disk.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from submarine_jobs.commands import complete
from submarine_jobs.frontends import Frontend
from submarine_jobs.text import one_line
from submarine_server.base import ApiError, BaseHandler, guarded
from submarine_server.handlers.cluster import cluster_now

#: Words of a line, characters of one, and answers.
MAX_WORDS, MAX_WORD, MAX_ANSWERS = 100, 400, 200
#: Seconds that a person waits for the cluster's queues while typing.
MOMENT = 1.0
_FILES = (".py", ".ipynb", "/")


class CompleteHandler(BaseHandler):
    """``GET complete``."""

    @guarded("read")
    async def get(self) -> None:
        """The last word completed.

        ``words`` is given once a word, the last one possibly empty; or once, with spaces.
        """
        words = self.get_query_arguments("words", strip=False)
        if len(words) == 1:
            words = words[0].split(" ")
        if len(words) > MAX_WORDS or any(len(word) > MAX_WORD for word in words):
            raise ApiError(400, f"A line has at most {MAX_WORDS} words of {MAX_WORD} characters.")
        if any("queue" in word for word in words[-2:]):
            with contextlib.suppress(Exception):  # then as they were known last
                await asyncio.wait_for(cluster_now(self.core), MOMENT)
        found = await self.core.here(complete, words, Frontend())
        fit = [one_line(word, MAX_WORD) for word in found if not word.endswith(_FILES)]
        self.answer({"words": fit[:MAX_ANSWERS]})


ROUTES: list[tuple[str, Any]] = [(r"complete", CompleteHandler)]
