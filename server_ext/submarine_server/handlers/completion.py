"""Completion of the last word of a command: verbs, options, queues, job ids.

File names are omitted: the server's directory is not the notebook's, and access to jobs does not
include access to the server's files.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from submarine_jobs.commands import complete
from submarine_jobs.frontends import Frontend
from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_server.base import Answer, ApiError, BaseHandler, guarded
from submarine_server.handlers.cluster import cluster_now
from submarine_server.views import WordsJson

#: Limits: words of a line, characters of a word, completions.
MAX_WORDS, MAX_WORD, MAX_COMPLETIONS = 100, 400, 200
#: Seconds to wait for the queues of the cluster.
CLUSTER_TIMEOUT = 1.0
_FILE_ENDINGS = (".py", ".ipynb", "/")


class CompletionHandler(BaseHandler):
    """``GET complete``."""

    @guarded("read", Answer((WordsJson,)))
    async def get(self) -> None:
        """Complete the last word.

        The parameter ``words`` is repeated for each word, or given once as a line.
        """
        words = self.get_query_arguments("words", strip=False)
        if len(words) == 1:
            words = words[0].split(" ")
        if len(words) > MAX_WORDS or any(len(word) > MAX_WORD for word in words):
            raise ApiError(
                400,
                _("A line has at most {max_words} words of {max_word} characters.").format(
                    max_words=MAX_WORDS, max_word=MAX_WORD
                ),
            )
        if any("queue" in word for word in words[-2:]):
            with contextlib.suppress(Exception):  # use the last known queues
                await asyncio.wait_for(cluster_now(self.service), CLUSTER_TIMEOUT)
        found = await self.service.call_local(complete, words, Frontend())
        completions = [
            one_line(word, MAX_WORD) for word in found if not word.endswith(_FILE_ENDINGS)
        ]
        self.finish_json({"words": completions[:MAX_COMPLETIONS]})


ROUTES: list[tuple[str, Any]] = [(r"complete", CompletionHandler)]
