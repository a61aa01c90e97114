"""TensorBoard in a container, and the options of every TensorBoard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.tensorboards.server import options as options, plugins as plugins
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "server": ("options", "plugins"),
        },
    )
