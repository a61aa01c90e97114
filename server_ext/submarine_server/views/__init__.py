"""JSON of jobs, records and metrics for the front end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.views.job import (
        JobDetails as JobDetails,
        model_json as model_json,
        row_json as row_json,
        view_json as view_json,
    )
    from submarine_server.views.record import (
        Json as Json,
        event_json as event_json,
        task_json as task_json,
    )
    from submarine_server.views.series import series_json as series_json
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "job": (
                "JobDetails",
                "model_json",
                "row_json",
                "view_json",
            ),
            "record": (
                "Json",
                "event_json",
                "task_json",
            ),
            "series": ("series_json",),
        },
    )
