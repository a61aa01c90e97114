"""The notebook as a front end: cards, text, tracebacks and questions in a cell's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.frontend.notebook_frontend import (
        NotebookFrontend as NotebookFrontend,
        OutputLimitReached as OutputLimitReached,
    )
    from submarine_magics.frontend.outcomes import (
        MAX_TEXT as MAX_TEXT,
        WaitInterrupted as WaitInterrupted,
        show_outcome as show_outcome,
    )
    from submarine_magics.frontend.tracebacks import (
        job_failed as job_failed,
        sentence_lines as sentence_lines,
        without_traceback as without_traceback,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "notebook_frontend": (
                "NotebookFrontend",
                "OutputLimitReached",
            ),
            "outcomes": (
                "MAX_TEXT",
                "WaitInterrupted",
                "show_outcome",
            ),
            "tracebacks": (
                "job_failed",
                "sentence_lines",
                "without_traceback",
            ),
        },
    )
