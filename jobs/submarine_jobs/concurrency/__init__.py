"""Run blocking calls in threads and subprocesses, with time limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.concurrency.daemon_thread import in_thread as in_thread
    from submarine_jobs.concurrency.subprocess_calls import (
        SubprocessCallError as SubprocessCallError,
        call_in_subprocess as call_in_subprocess,
        use_subprocesses as use_subprocesses,
        uses_subprocesses as uses_subprocesses,
    )
    from submarine_jobs.concurrency.time_limits import (
        call_timeout as call_timeout,
        call_with_timeout as call_with_timeout,
        current_timeout as current_timeout,
        fail_further_calls as fail_further_calls,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "daemon_thread": ("in_thread",),
            "subprocess_calls": (
                "SubprocessCallError",
                "call_in_subprocess",
                "use_subprocesses",
                "uses_subprocesses",
            ),
            "time_limits": (
                "call_timeout",
                "call_with_timeout",
                "current_timeout",
                "fail_further_calls",
            ),
        },
    )
