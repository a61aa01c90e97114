"""TensorBoard below the server's base URL: ``submarine/tensorboard/<job>[,<job>...]/``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.tensorboard.handler import ROUTES as ROUTES
    from submarine_server.tensorboard.registry import attach as attach
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "handler": ("ROUTES",),
            "registry": ("attach",),
        },
    )
