"""Run notebooks through jupyter-scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_workflows.scheduler.execution_manager import (
        SubmarineExecutionManager as SubmarineExecutionManager,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "execution_manager": ("SubmarineExecutionManager",),
        },
    )
