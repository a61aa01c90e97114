"""The job record while it grows, and advice for the owner of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.record.initial import new_record as new_record
    from submarine_runtime.record.resource_advice import (
        MIN_SECONDS as MIN_SECONDS,
        resource_hints as resource_hints,
    )
    from submarine_runtime.record.status import (
        MAX_EVENTS as MAX_EVENTS,
        MAX_MISSING as MAX_MISSING,
        MAX_WARNINGS as MAX_WARNINGS,
        Status as Status,
        TensorBoardClients as TensorBoardClients,
    )
    from submarine_runtime.record.unsaved_files import (
        MAX_UNSAVED as MAX_UNSAVED,
        UnsavedFiles as UnsavedFiles,
        unsaved_sentences as unsaved_sentences,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "initial": ("new_record",),
            "resource_advice": ("MIN_SECONDS", "resource_hints"),
            "status": ("MAX_EVENTS", "MAX_MISSING", "MAX_WARNINGS", "Status", "TensorBoardClients"),
            "unsaved_files": ("MAX_UNSAVED", "UnsavedFiles", "unsaved_sentences"),
        },
    )
