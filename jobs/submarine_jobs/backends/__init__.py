"""Where jobs run: ``yarn`` (skein) and ``local`` (processes on this machine)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.base import (
        Backend as Backend,
        Handle as Handle,
        Observation as Observation,
        Plan as Plan,
        Stage as Stage,
        Submission as Submission,
    )
    from submarine_jobs.backends.overview import (
        GpuHolder as GpuHolder,
        NodeUse as NodeUse,
        Overview as Overview,
        QueueUse as QueueUse,
        located_gpus as located_gpus,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "base": ("Backend", "Handle", "Observation", "Plan", "Stage", "Submission"),
            "overview": ("GpuHolder", "NodeUse", "Overview", "QueueUse", "located_gpus"),
        },
    )
