"""Turn a spec and a bundle into a running job: directory, intent, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.submit.submission import (
        StartTakenError as StartTakenError,
        submit as submit,
    )
    from submarine_jobs.submit.validation import (
        probe_job_root as probe_job_root,
        validate as validate,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "submission": ("StartTakenError", "submit"),
            "validation": ("probe_job_root", "validate"),
        },
    )
