"""Start and stop of a cluster: settings and ports, start order, readiness, shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_minicluster.lifecycle.shutdown import (
        kill_node as kill_node,
        stop_all as stop_all,
    )
    from submarine_minicluster.lifecycle.startup import Startup as Startup, own_names as own_names
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "shutdown": ("kill_node", "stop_all"),
            "startup": ("Startup", "own_names"),
        },
    )
