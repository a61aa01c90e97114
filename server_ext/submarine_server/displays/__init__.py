"""Displayed jobs, metrics and workflow runs, shared by all connections that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.displays.jobs import JobDisplays as JobDisplays
    from submarine_server.displays.metrics import MetricsDisplays as MetricsDisplays
    from submarine_server.displays.workflows import WorkflowDisplays as WorkflowDisplays
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "jobs": ("JobDisplays",),
            "metrics": ("MetricsDisplays",),
            "workflows": ("WorkflowDisplays",),
        },
    )
