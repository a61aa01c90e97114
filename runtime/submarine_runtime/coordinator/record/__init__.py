"""The job's record and events while the job runs, and the journal of the state machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.coordinator.record.job_status import JobStatus as JobStatus
    from submarine_runtime.coordinator.record.journal import (
        SEATS_FILE as SEATS_FILE,
        Journal as Journal,
        is_complete as is_complete,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job_status": ("JobStatus",),
            "journal": (
                "Journal",
                "SEATS_FILE",
                "is_complete",
            ),
        },
    )
