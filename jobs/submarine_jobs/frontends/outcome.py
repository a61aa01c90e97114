"""What a verb gives back: a value for machines, text and HTML for people, an exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submarine_jobs.client import Job

SUCCESS = 0
JOB_FAILED = 1
USAGE = 2
CLUSTER = 3
INTERRUPTED = 130


@dataclass(frozen=True)
class Outcome:
    """The result of one command.

    Parameters
    ----------
    text
        For people, without a final newline; may hold untrusted text, made harmless already.
    html
        The same for a notebook, or None where text is enough.
    value
        Plain JSON values, for ``--json``.
    exit_code
        0 success, 1 job failed, 2 usage, 3 cluster unreachable, 130 interrupted.
    job
        The job that the command is about; a notebook shows its card instead of ``text``.
    as_json
        ``--json`` was given: show ``value``, nothing else.
    mime
        MIME type -> data that a notebook's output holds besides, for a renderer of our own.
    """

    text: str = ""
    html: str | None = None
    value: Any = None
    exit_code: int = SUCCESS
    job: Job | None = None
    as_json: bool = False
    mime: Mapping[str, Any] = field(default_factory=dict)

    def rendered(self) -> str:
        """What a terminal shows: the text, or with ``--json`` the value as JSON."""
        return to_json(self.value) if self.as_json else self.text


def to_json(value: Any) -> str:
    """``value`` as JSON on several lines; ASCII only, so that no terminal acts on it."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
