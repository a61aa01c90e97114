"""Read a job's logs: live from its port, then from shipped segments; by offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.logs.following import follow as follow, follow_newest as follow_newest
    from submarine_jobs.logs.log_tail import TAIL_BYTES as TAIL_BYTES, Tail as Tail
    from submarine_jobs.logs.merging import merged as merged, read_from as read_from
    from submarine_jobs.logs.position import (
        LogKey as LogKey,
        LogPosition as LogPosition,
        key_of as key_of,
        order as order,
    )
    from submarine_jobs.logs.reading import check as check
    from submarine_jobs.logs.shipped_log import (
        ShippedLog as ShippedLog,
        shipped_attempts as shipped_attempts,
        shipped_lengths as shipped_lengths,
        shipped_tasks as shipped_tasks,
    )
    from submarine_jobs.logs.times import (
        Mark as Mark,
        parse_index as parse_index,
        part_of as part_of,
        shipped_index as shipped_index,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "following": ("follow", "follow_newest"),
            "log_tail": ("TAIL_BYTES", "Tail"),
            "merging": ("merged", "read_from"),
            "position": ("LogKey", "LogPosition", "key_of", "order"),
            "reading": ("check",),
            "shipped_log": ("ShippedLog", "shipped_attempts", "shipped_lengths", "shipped_tasks"),
            "times": ("Mark", "parse_index", "part_of", "shipped_index"),
        },
    )
