"""Build the YARN application of a job: containers, files, scripts; and hand it to the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn.application.distributed import (
        containers_needed as containers_needed,
    )
    from submarine_jobs.backends.yarn.application.localized_files import (
        localized_words as localized_words,
    )
    from submarine_jobs.backends.yarn.application.maker import ApplicationMaker as ApplicationMaker
    from submarine_jobs.backends.yarn.application.submission import (
        submit_application as submit_application,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "distributed": ("containers_needed",),
            "submission": ("submit_application",),
            "localized_files": ("localized_words",),
            "maker": ("ApplicationMaker",),
        },
    )
