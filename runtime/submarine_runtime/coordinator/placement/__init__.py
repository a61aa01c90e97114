"""Request and release containers: YARN through skein, or processes of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.placement.inquiry import (
        Inquiry as Inquiry,
        needs_of as needs_of,
    )
    from submarine_runtime.coordinator.placement.local_placer import LocalPlacer as LocalPlacer
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
            "inquiry": ("Inquiry", "needs_of"),
            "local_placer": ("LocalPlacer",),
            "placer": ("PlacementThread", "Placer"),
            "yarn_placer": ("YarnPlacer",),
        },
    )
