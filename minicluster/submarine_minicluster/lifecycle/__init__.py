"""Start, stop and repair the cluster's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_minicluster.lifecycle.startup import Bringup as Bringup
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "startup": ("Bringup",),
        },
    )
