"""The job record while it grows, and advice for the owner of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.record.onlookers import Onlookers as Onlookers
    from submarine_runtime.record.resource_advice import TELLING as TELLING, hints as hints
    from submarine_runtime.record.status import (
        MAX_EVENTS as MAX_EVENTS,
        MAX_MISSING as MAX_MISSING,
        MAX_WARNINGS as MAX_WARNINGS,
        Status as Status,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "onlookers": ("Onlookers",),
            "resource_advice": ("TELLING", "hints"),
            "status": ("MAX_EVENTS", "MAX_MISSING", "MAX_WARNINGS", "Status"),
        },
    )
