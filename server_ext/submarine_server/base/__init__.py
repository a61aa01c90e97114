"""Base classes of the request handlers: access checks, errors, threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.base.errors import ApiError as ApiError, api_error as api_error
    from submarine_server.base.handlers import (
        BaseHandler as BaseHandler,
        checked_job_id as checked_job_id,
        core_of as core_of,
        guarded as guarded,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "errors": ("ApiError", "api_error"),
            "handlers": ("BaseHandler", "checked_job_id", "core_of", "guarded"),
        },
    )
