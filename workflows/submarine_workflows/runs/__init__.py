"""Runs of workflows, whatever runs them: lists, views, actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.runs.folders import (
        RunFolder as RunFolder,
        RunNotFoundError as RunNotFoundError,
        Runs as Runs,
    )
    from submarine_workflows.runs.journal import (
        Journal as Journal,
        Lock as Lock,
        held as held,
        is_held as is_held,
    )
    from submarine_workflows.runs.logs import followed as followed, shown as shown
    from submarine_workflows.runs.missed_runs import (
        Missed as Missed,
        missed as missed,
        scheduled_starts as scheduled_starts,
    )
    from submarine_workflows.runs.statuses import (
        Concurrent as Concurrent,
        FailureAction as FailureAction,
        Status as Status,
    )
    from submarine_workflows.runs.tables import (
        head_of as head_of,
        history_html as history_html,
        history_rows as history_rows,
        history_text as history_text,
        html_of as html_of,
        log_of as log_of,
        log_tail as log_tail,
        missed_sentence as missed_sentence,
        table_of as table_of,
    )
    from submarine_workflows.runs.views import RunView as RunView, view_of as view_of
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "folders": ("RunFolder", "RunNotFoundError", "Runs"),
            "journal": ("Journal", "Lock", "held", "is_held"),
            "logs": ("followed", "shown"),
            "missed_runs": ("Missed", "missed", "scheduled_starts"),
            "statuses": ("Concurrent", "FailureAction", "Status"),
            "tables": (
                "head_of",
                "history_html",
                "history_rows",
                "history_text",
                "html_of",
                "log_of",
                "log_tail",
                "missed_sentence",
                "table_of",
            ),
            "views": ("RunView", "view_of"),
        },
    )
