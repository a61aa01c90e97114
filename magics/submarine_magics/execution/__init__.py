"""Cells that are being executed: request, interrupts, threads, assigned name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.execution.assignment import (
        bind as bind,
        called_from_cell as called_from_cell,
    )
    from submarine_magics.execution.cell_threads import threads_of_cells as threads_of_cells
    from submarine_magics.execution.executions import (
        Execution as Execution,
        Executions as Executions,
        requested as requested,
    )
    from submarine_magics.execution.headless_mode import (
        headless_of as headless_of,
        told_by_runner as told_by_runner,
    )
    from submarine_magics.execution.interrupts import (
        in_one_go as in_one_go,
        interruptible as interruptible,
        undisturbed as undisturbed,
    )
    from submarine_magics.execution.transformers import (
        COLLECT as COLLECT,
        COLLECT_ONLY as COLLECT_ONLY,
        ONLY_CALL as ONLY_CALL,
        only_by_tag as only_by_tag,
        run_body_here as run_body_here,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "assignment": ("bind", "called_from_cell"),
            "cell_threads": ("threads_of_cells",),
            "executions": ("Execution", "Executions", "requested"),
            "headless_mode": ("headless_of", "told_by_runner"),
            "interrupts": ("in_one_go", "interruptible", "undisturbed"),
            "transformers": (
                "COLLECT",
                "COLLECT_ONLY",
                "ONLY_CALL",
                "only_by_tag",
                "run_body_here",
            ),
        },
    )
