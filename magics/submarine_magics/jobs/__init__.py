"""Jobs that one kernel has started, and the guard that cancels them if the kernel dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.jobs.kernel_jobs import KernelJob as KernelJob, KernelJobs as KernelJobs
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "kernel_jobs": (
                "KernelJob",
                "KernelJobs",
            ),
        },
    )
