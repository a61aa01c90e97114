"""Base of the request handlers: access checks, origins, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.base.errors import ApiError as ApiError, api_error as api_error
    from submarine_server.base.handlers import (
        BaseHandler as BaseHandler,
        guarded as guarded,
        require_job_id as require_job_id,
        service_of as service_of,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "errors": (
                "ApiError",
                "api_error",
            ),
            "handlers": (
                "BaseHandler",
                "guarded",
                "require_job_id",
                "service_of",
            ),
        },
    )
