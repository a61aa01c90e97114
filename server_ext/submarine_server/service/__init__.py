"""Access to the jobs of the server's user: sessions, job details, bounded blocking calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.service.job_details import owns as owns
    from submarine_server.service.job_service import (
        TIMEOUT as TIMEOUT,
        CallLimiter as CallLimiter,
        JobService as JobService,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job_details": ("owns",),
            "job_service": (
                "CallLimiter",
                "JobService",
                "TIMEOUT",
            ),
        },
    )
