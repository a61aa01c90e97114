"""Start the coordinator, and start it again when it dies or hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.supervision.liveness import Pulse as Pulse
    from submarine_runtime.coordinator.supervision.process_identity import (
        Master as Master,
        start_time as start_time,
    )
    from submarine_runtime.coordinator.supervision.supervisor import CRASHED as CRASHED
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "liveness": ("Pulse",),
            "process_identity": ("Master", "start_time"),
            "supervisor": ("CRASHED",),
        },
    )
