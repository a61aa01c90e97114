"""Start the coordinator, and start it again when it dies or hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.supervision.liveness import LivenessFile as LivenessFile
    from submarine_runtime.coordinator.supervision.process_identity import (
        ProcessIdentity as ProcessIdentity,
        start_time as start_time,
    )
    from submarine_runtime.coordinator.supervision.supervisor import CRASHED as CRASHED
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "liveness": ("LivenessFile",),
            "process_identity": (
                "ProcessIdentity",
                "start_time",
            ),
            "supervisor": ("CRASHED",),
        },
    )
