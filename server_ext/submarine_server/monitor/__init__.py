"""Monitor of all jobs of the server's user: index, polls and the job table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.monitor.job_monitor import (
        JobMonitor as JobMonitor,
        event_publisher as event_publisher,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job_monitor": (
                "JobMonitor",
                "event_publisher",
            ),
        },
    )
