"""Run blocking calls in threads and subprocesses, with time limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.concurrency.daemon_thread import in_thread as in_thread
    from submarine_jobs.concurrency.subprocess_calls import (
        ApartError as ApartError,
        call_apart as call_apart,
        stay_small as stay_small,
        stays_small as stays_small,
    )
    from submarine_jobs.concurrency.time_limits import (
        call_within as call_within,
        limited as limited,
        note_silence as note_silence,
        patience as patience,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "daemon_thread": ("in_thread",),
            "subprocess_calls": ("ApartError", "call_apart", "stay_small", "stays_small"),
            "time_limits": ("call_within", "limited", "note_silence", "patience"),
        },
    )
