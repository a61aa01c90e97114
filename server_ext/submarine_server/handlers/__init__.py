"""REST handlers, one module per resource; each module has ``ROUTES``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.handlers.health import NotFoundHandler as NotFoundHandler
    from submarine_server.handlers.routes import ROUTES as ROUTES
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "health": ("NotFoundHandler",),
            "routes": ("ROUTES",),
        },
    )
