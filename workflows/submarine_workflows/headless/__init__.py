"""Unattended notebook runs: the runner, signals and limits, and papermill's engine.

This package is independent of workflows: a node's command is one run of one notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.headless.document import select_cells as select_cells
    from submarine_workflows.headless.failures import (
        MAX_MESSAGE as MAX_MESSAGE,
        why_failed as why_failed,
    )
    from submarine_workflows.headless.signals import Traps as Traps
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "document": ("select_cells",),
            "failures": ("MAX_MESSAGE", "why_failed"),
            "signals": ("Traps",),
        },
    )
