"""The job record while it grows, and advice for the owner of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.record.initial import new_record as new_record
    from submarine_runtime.record.resource_advice import TELLING as TELLING, hints as hints
    from submarine_runtime.record.status import (
        MAX_EVENTS as MAX_EVENTS,
        MAX_MISSING as MAX_MISSING,
        MAX_WARNINGS as MAX_WARNINGS,
        Onlookers as Onlookers,
        Status as Status,
    )
    from submarine_runtime.record.unsaved_files import (
        MAX_UNSAVED as MAX_UNSAVED,
        Unsaved as Unsaved,
        unsaved_sentences as unsaved_sentences,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "initial": ("new_record",),
            "resource_advice": ("TELLING", "hints"),
            "status": ("MAX_EVENTS", "MAX_MISSING", "MAX_WARNINGS", "Onlookers", "Status"),
            "unsaved_files": ("MAX_UNSAVED", "Unsaved", "unsaved_sentences"),
        },
    )
