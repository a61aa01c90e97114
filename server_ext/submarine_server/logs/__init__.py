"""Logs of jobs, running and ended: read by offset, listed, searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.logs.growing_log import GrowingLog as GrowingLog
    from submarine_server.logs.lengths import EVERY as EVERY
    from submarine_server.logs.listing import (
        list_logs as list_logs,
        newest_attempt as newest_attempt,
        reader_of as reader_of,
    )
    from submarine_server.logs.live_logs import JobLog as JobLog
    from submarine_server.logs.pattern import (
        ERRORS as ERRORS,
        LONGEST as LONGEST,
        compiled as compiled,
    )
    from submarine_server.logs.reader import (
        MOST as MOST,
        LogReader as LogReader,
        log_key as log_key,
    )
    from submarine_server.logs.search_run import (
        SECONDS as SECONDS,
        Done as Done,
        Search as Search,
        lane_of as lane_of,
        search as search,
    )
    from submarine_server.logs.searching import Hit as Hit
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "growing_log": ("GrowingLog",),
            "lengths": ("EVERY",),
            "listing": ("list_logs", "newest_attempt", "reader_of"),
            "live_logs": ("JobLog",),
            "pattern": ("ERRORS", "LONGEST", "compiled"),
            "reader": ("LogReader", "MOST", "log_key"),
            "search_run": ("Done", "SECONDS", "Search", "lane_of", "search"),
            "searching": ("Hit",),
        },
    )
