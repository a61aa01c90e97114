"""Cells that are being executed: request, rewriting, interrupts, threads, assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.execution.assignment import (
        bind as bind,
        called_from_cell as called_from_cell,
    )
    from submarine_magics.execution.cell_threads import (
        has_thread_errors as has_thread_errors,
        record_thread_errors as record_thread_errors,
        take_thread_errors as take_thread_errors,
        threads_of_cells as threads_of_cells,
    )
    from submarine_magics.execution.executions import (
        Execution as Execution,
        Executions as Executions,
        current_request as current_request,
    )
    from submarine_magics.execution.headless_mode import (
        headless_settings as headless_settings,
        runner_settings as runner_settings,
    )
    from submarine_magics.execution.interrupts import (
        allow_interrupts as allow_interrupts,
        defer_interrupts as defer_interrupts,
        ignore_interrupts as ignore_interrupts,
    )
    from submarine_magics.execution.transformers import (
        COLLECT as COLLECT,
        COLLECT_ONLY as COLLECT_ONLY,
        HELP_REQUEST as HELP_REQUEST,
        ONLY_CALL as ONLY_CALL,
        rewrite_first_line as rewrite_first_line,
        rewrite_question as rewrite_question,
        rewrite_tagged_cell as rewrite_tagged_cell,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "assignment": (
                "bind",
                "called_from_cell",
            ),
            "cell_threads": (
                "has_thread_errors",
                "record_thread_errors",
                "take_thread_errors",
                "threads_of_cells",
            ),
            "executions": (
                "Execution",
                "Executions",
                "current_request",
            ),
            "headless_mode": (
                "headless_settings",
                "runner_settings",
            ),
            "interrupts": (
                "allow_interrupts",
                "defer_interrupts",
                "ignore_interrupts",
            ),
            "transformers": (
                "COLLECT",
                "COLLECT_ONLY",
                "HELP_REQUEST",
                "ONLY_CALL",
                "rewrite_first_line",
                "rewrite_question",
                "rewrite_tagged_cell",
            ),
        },
    )
