"""Session and Job: list, watch, wait for, cancel and repeat jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job as Job
    from submarine_jobs.client.job_ownership import (
        foreign_owner as foreign_owner,
        noted_owner as noted_owner,
        user_of as user_of,
    )
    from submarine_jobs.client.listing import (
        all_months as all_months,
        import_job as import_job,
        newest_months as newest_months,
        remove_abandoned as remove_abandoned,
        target_of as target_of,
        unknown_jobs as unknown_jobs,
    )
    from submarine_jobs.client.run_attempts import start_or_join as start_or_join
    from submarine_jobs.client.session import Session as Session
    from submarine_jobs.client.views import final_record as final_record, view_job as view_job
    from submarine_jobs.client.waiting import ending_words as ending_words
    from submarine_jobs.client.watcher import Watcher as Watcher
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job": ("Job",),
            "job_ownership": ("foreign_owner", "noted_owner", "user_of"),
            "listing": (
                "all_months",
                "import_job",
                "newest_months",
                "remove_abandoned",
                "target_of",
                "unknown_jobs",
            ),
            "run_attempts": ("start_or_join",),
            "session": ("Session",),
            "views": ("final_record", "view_job"),
            "waiting": ("ending_words",),
            "watcher": ("Watcher",),
        },
    )
