"""Jobs and workflow runs on display in pages, and their observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.displays.jobs import Displays as Displays
    from submarine_server.displays.metrics import MetricsReaders as MetricsReaders
    from submarine_server.displays.workflows import RunDisplays as RunDisplays
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "jobs": ("Displays",),
            "metrics": ("MetricsReaders",),
            "workflows": ("RunDisplays",),
        },
    )
