"""The ``local`` backend: the agent as a detached process of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.backends.local.backend import LocalBackend as LocalBackend
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "backend": ("LocalBackend",),
        },
    )
