"""Report the jobs that a notebook starts; schedulers search the log for their ids.

The ids are read from the job cards in the outputs, which are untrusted text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from submarine_jobs.display import MIME_TYPE
from submarine_jobs.text import printable

_APPLICATION = re.compile(r"application_\d{1,20}_\d{1,10}")
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "LOST")
_MAX_JOBS = 1000


class Announcer:
    """Reports each job once per state of interest."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: dict[str, tuple[str, bool]] = {}

    def seen(self, data: Mapping[str, Any]) -> None:
        """Report new facts of an output: the job, its application, its end."""
        card = data.get(MIME_TYPE)
        if not isinstance(card, dict) or len(self._said) >= _MAX_JOBS:
            return
        job_id = printable(str(card.get("job_id", "")), 200)
        state = printable(str(card.get("state", "")), 20)
        application, ended = _application(card), state in _ENDED
        if not job_id or self._said.get(job_id) == (application, ended):
            return
        self._said[job_id] = (application, ended)
        # A separate word: Azkaban searches for words that begin with `application_`.
        where = f" as {application}" if application else ""
        self._say(f"{job_id}{where}: {state}")


def _application(card: Mapping[str, Any]) -> str:
    record = card.get("record")
    values = record.values() if isinstance(record, dict) else ()
    texts = (value for value in values if isinstance(value, str))
    return next((found[0] for text in texts if (found := _APPLICATION.fullmatch(text))), "")
