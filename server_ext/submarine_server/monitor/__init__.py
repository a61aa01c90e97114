"""The one watcher of a server: all jobs by one poll, those on display by one stream each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.monitor.job_events import teller as teller
    from submarine_server.monitor.job_monitor import JobsWatch as JobsWatch
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job_events": ("teller",),
            "job_monitor": ("JobsWatch",),
        },
    )
