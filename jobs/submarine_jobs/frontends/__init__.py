"""Front ends of the command language: interface, terminal, outcome of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.frontends.base import Frontend as Frontend
    from submarine_jobs.frontends.outcome import (
        CLUSTER as CLUSTER,
        INTERRUPTED as INTERRUPTED,
        JOB_FAILED as JOB_FAILED,
        SUCCESS as SUCCESS,
        USAGE as USAGE,
        Outcome as Outcome,
        to_json as to_json,
    )
    from submarine_jobs.frontends.status_line import StatusLine as StatusLine
    from submarine_jobs.frontends.submit_progress import (
        ASKING as ASKING,
        WAITING as WAITING,
        SubmitProgress as SubmitProgress,
    )
    from submarine_jobs.frontends.terminal import TerminalFrontend as TerminalFrontend
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "base": ("Frontend",),
            "outcome": (
                "CLUSTER",
                "INTERRUPTED",
                "JOB_FAILED",
                "Outcome",
                "SUCCESS",
                "USAGE",
                "to_json",
            ),
            "status_line": ("StatusLine",),
            "submit_progress": ("ASKING", "SubmitProgress", "WAITING"),
            "terminal": ("TerminalFrontend",),
        },
    )
