"""The notebook as a front end: cards, text, tracebacks and questions in the output of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.frontend.notebook_frontend import NotebookFrontend as NotebookFrontend
    from submarine_magics.frontend.outcomes import (
        MAX_TEXT as MAX_TEXT,
        OutputLimitReached as OutputLimitReached,
        WaitInterrupted as WaitInterrupted,
        show_outcome as show_outcome,
    )
    from submarine_magics.frontend.refusal import (
        as_refusal as as_refusal,
        sentence_lines as sentence_lines,
    )
    from submarine_magics.frontend.tracebacks import job_failed as job_failed
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "notebook_frontend": ("NotebookFrontend",),
            "outcomes": ("MAX_TEXT", "OutputLimitReached", "WaitInterrupted", "show_outcome"),
            "refusal": ("as_refusal", "sentence_lines"),
            "tracebacks": ("job_failed",),
        },
    )
