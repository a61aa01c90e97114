"""Read YARN from a container: ResourceManager, queues, waiting reasons, page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.yarn.capacity import (
        Size as Size,
        job_id_of as job_id_of,
        parse_size as parse_size,
    )
    from submarine_runtime.yarn.container import (
        LAUNCH_SCRIPT as LAUNCH_SCRIPT,
        first_change as first_change,
        reachable_host as reachable_host,
        say as say,
        wait_teller as wait_teller,
        write_error as write_error,
        write_traceback as write_traceback,
    )
    from submarine_runtime.yarn.page import (
        ApplicationMaster as ApplicationMaster,
        PageServer as PageServer,
    )
    from submarine_runtime.yarn.pending import (
        ContainerRequest as ContainerRequest,
        amounts as amounts,
        explain_pending as explain_pending,
        localizing_sentence as localizing_sentence,
    )
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
            "capacity": ("Size", "job_id_of", "parse_size"),
            "container": (
                "LAUNCH_SCRIPT",
                "first_change",
                "reachable_host",
                "say",
                "wait_teller",
                "write_error",
                "write_traceback",
            ),
            "page": ("ApplicationMaster", "PageServer"),
            "pending": ("ContainerRequest", "amounts", "explain_pending", "localizing_sentence"),
            "resourcemanager": (
                "application",
                "application_is_over",
                "application_was_killed",
                "container_started",
            ),
        },
    )
