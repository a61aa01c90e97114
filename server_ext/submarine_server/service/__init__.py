"""The jobs of one server: session, job details, links."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.service.job_details import demand_mine as demand_mine
    from submarine_server.service.job_service import (
        PATIENCE as PATIENCE,
        Core as Core,
        Lane as Lane,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job_details": ("demand_mine",),
            "job_service": ("Core", "Lane", "PATIENCE"),
        },
    )
