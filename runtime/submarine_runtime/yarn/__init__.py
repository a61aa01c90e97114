"""Read YARN from a container: ResourceManager, queues, waiting reasons, page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.yarn.capacity import Size as Size, job_of as job_of, size as size
    from submarine_runtime.yarn.container import (
        LAUNCH_SCRIPT as LAUNCH_SCRIPT,
        first_change as first_change,
        new_record as new_record,
        reachable_host as reachable_host,
        say as say,
        wait_teller as wait_teller,
        write_error as write_error,
        write_traceback as write_traceback,
    )
    from submarine_runtime.yarn.page import Master as Master, Page as Page
    from submarine_runtime.yarn.pending import Need as Need, explain as explain
    from submarine_runtime.yarn.pending_sentences import localizing as localizing, words as words
    from submarine_runtime.yarn.resourcemanager import (
        application as application,
        application_is_over as application_is_over,
        application_was_killed as application_was_killed,
        container_started as container_started,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "capacity": ("Size", "job_of", "size"),
            "container": (
                "LAUNCH_SCRIPT",
                "first_change",
                "new_record",
                "reachable_host",
                "say",
                "wait_teller",
                "write_error",
                "write_traceback",
            ),
            "page": ("Master", "Page"),
            "pending": ("Need", "explain"),
            "pending_sentences": ("localizing", "words"),
            "resourcemanager": (
                "application",
                "application_is_over",
                "application_was_killed",
                "container_started",
            ),
        },
    )
