"""Logs of running and ended jobs: list, read by offset, follow, search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.logs.growing_log import GrowingLog as GrowingLog
    from submarine_server.logs.lengths import ALL_TASKS as ALL_TASKS
    from submarine_server.logs.listing import (
        list_logs as list_logs,
        log_reader as log_reader,
        newest_attempt as newest_attempt,
    )
    from submarine_server.logs.live_logs import (
        LiveLogs as LiveLogs,
        follow as follow,
        unfollow as unfollow,
    )
    from submarine_server.logs.reader import (
        MAX_READ as MAX_READ,
        LogReader as LogReader,
        log_key as log_key,
    )
    from submarine_server.logs.search import (
        ERROR_PATTERN as ERROR_PATTERN,
        MAX_PATTERN as MAX_PATTERN,
        TIME_LIMIT as TIME_LIMIT,
        Hit as Hit,
        SearchRequest as SearchRequest,
        SearchResult as SearchResult,
        compile_pattern as compile_pattern,
        search_limiter as search_limiter,
        search_log as search_log,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "growing_log": ("GrowingLog",),
            "lengths": ("ALL_TASKS",),
            "listing": (
                "list_logs",
                "log_reader",
                "newest_attempt",
            ),
            "live_logs": (
                "LiveLogs",
                "follow",
                "unfollow",
            ),
            "reader": (
                "LogReader",
                "MAX_READ",
                "log_key",
            ),
            "search": (
                "ERROR_PATTERN",
                "Hit",
                "MAX_PATTERN",
                "SearchRequest",
                "SearchResult",
                "TIME_LIMIT",
                "compile_pattern",
                "search_limiter",
                "search_log",
            ),
        },
    )
