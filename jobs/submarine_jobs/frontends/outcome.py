"""Result of a command: JSON value, text, HTML and exit code."""

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
        Text without a final newline; untrusted parts are sanitized.
    html
        HTML of the same content for notebooks; None: the text is shown.
    value
        JSON value for ``--json``.
    exit_code
        0 success, 1 job failed, 2 usage, 3 cluster unreachable, 130 interrupted.
    job
        The job of the command; a notebook shows its card instead of ``text``.
    as_json
        Whether ``--json`` was given: only ``value`` is shown.
    mime
        Additional data of a notebook's output, by MIME type, for the JupyterLab extension.
    """

    text: str = ""
    html: str | None = None
    value: Any = None
    exit_code: int = SUCCESS
    job: Job | None = None
    as_json: bool = False
    mime: Mapping[str, Any] = field(default_factory=dict)

    def rendered(self) -> str:
        """Return the output for a terminal: the text, or with ``--json`` the value as JSON."""
        return to_json(self.value) if self.as_json else self.text


def to_json(value: Any) -> str:
    """Return ``value`` as indented JSON; ASCII only, so without terminal control characters."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
