"""State of jobs that is not in one handle: local index, observation, closing, leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.tracking.closing import (
        close as close,
        close_unsubmitted as close_unsubmitted,
        shipped_record as shipped_record,
    )
    from submarine_jobs.tracking.index import JobStore as JobStore, Known as Known, Origin as Origin
    from submarine_jobs.tracking.index_query import JobQuery as JobQuery, cursor_of as cursor_of
    from submarine_jobs.tracking.leases import renew_while_alive as renew_while_alive
    from submarine_jobs.tracking.observation import (
        Target as Target,
        bare_record as bare_record,
        observe_all as observe_all,
        remember as remember,
        settle as settle,
        unasked as unasked,
        unreachable as unreachable,
        unread as unread,
        without_directory as without_directory,
    )
    from submarine_jobs.tracking.ownership import Owner as Owner, attributed as attributed
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "closing": ("close", "close_unsubmitted", "shipped_record"),
            "index": ("JobStore", "Known", "Origin"),
            "index_query": ("JobQuery", "cursor_of"),
            "leases": ("renew_while_alive",),
            "observation": (
                "Target",
                "bare_record",
                "observe_all",
                "remember",
                "settle",
                "unasked",
                "unreachable",
                "unread",
                "without_directory",
            ),
            "ownership": ("Owner", "attributed"),
        },
    )
