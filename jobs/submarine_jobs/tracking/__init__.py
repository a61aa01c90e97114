"""State of jobs that is not in one handle: local index, observation, closing, leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.tracking.closing import (
        close as close,
        close_unsubmitted as close_unsubmitted,
        shipped_record as shipped_record,
    )
    from submarine_jobs.tracking.index import (
        IndexEntry as IndexEntry,
        JobQuery as JobQuery,
        JobStore as JobStore,
        Origin as Origin,
        cursor_of as cursor_of,
    )
    from submarine_jobs.tracking.leases import renew_while_alive as renew_while_alive
    from submarine_jobs.tracking.observation import (
        Target as Target,
        bare_record as bare_record,
        last_known_record as last_known_record,
        observe_all as observe_all,
        record_from_backend as record_from_backend,
        record_without_backend as record_without_backend,
        record_without_directory as record_without_directory,
        resolve_record as resolve_record,
        save_record as save_record,
    )
    from submarine_jobs.tracking.ownership import Owner as Owner, with_owner as with_owner
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "closing": ("close", "close_unsubmitted", "shipped_record"),
            "index": ("IndexEntry", "JobQuery", "JobStore", "Origin", "cursor_of"),
            "leases": ("renew_while_alive",),
            "observation": (
                "Target",
                "bare_record",
                "last_known_record",
                "observe_all",
                "record_from_backend",
                "record_without_backend",
                "record_without_directory",
                "resolve_record",
                "save_record",
            ),
            "ownership": ("Owner", "with_owner"),
        },
    )
