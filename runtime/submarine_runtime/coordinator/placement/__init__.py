"""Request and release containers: YARN through skein, or processes of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.placement.local_placer import LocalPlacer as LocalPlacer
    from submarine_runtime.coordinator.placement.pending_reason import (
        PendingReasonThread as PendingReasonThread,
        missing_containers as missing_containers,
    )
    from submarine_runtime.coordinator.placement.placer import (
        PlacementThread as PlacementThread,
        Placer as Placer,
    )
    from submarine_runtime.coordinator.placement.yarn_placer import YarnPlacer as YarnPlacer
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "local_placer": ("LocalPlacer",),
            "pending_reason": (
                "PendingReasonThread",
                "missing_containers",
            ),
            "placer": (
                "PlacementThread",
                "Placer",
            ),
            "yarn_placer": ("YarnPlacer",),
        },
    )
