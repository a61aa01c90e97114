"""``submarine doctor``: independent checks of this machine and the cluster, each with its fix.

Looks and never repairs. A check knows nothing of the others; ``runner`` gives each its time limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.doctor.checks import CHECKS as CHECKS
    from submarine_jobs.doctor.context import DoctorContext as DoctorContext
    from submarine_jobs.doctor.result import (
        Check as Check,
        Finding as Finding,
        Result as Result,
        Status as Status,
        error as error,
        ok as ok,
        warning as warning,
    )
    from submarine_jobs.doctor.runner import examine as examine
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "checks": ("CHECKS",),
            "context": ("DoctorContext",),
            "result": ("Check", "Finding", "Result", "Status", "error", "ok", "warning"),
            "runner": ("examine",),
        },
    )
