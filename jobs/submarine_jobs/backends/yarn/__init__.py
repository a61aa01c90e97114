"""The yarn backend: jobs as skein applications on a YARN cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.yarn.backend import YarnBackend as YarnBackend
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "backend": ("YarnBackend",),
        },
    )
