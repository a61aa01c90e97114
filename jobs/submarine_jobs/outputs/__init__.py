"""What a job leaves behind: returned values, models, metrics, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.outputs.data_frame import metrics_frame as metrics_frame
    from submarine_jobs.outputs.files import (
        download_files as download_files,
        list_outputs as list_outputs,
    )
    from submarine_jobs.outputs.metrics import (
        MetricsReader as MetricsReader,
        Row as Row,
        read_metrics as read_metrics,
    )
    from submarine_jobs.outputs.model_versions import (
        ModelVersion as ModelVersion,
        versions as versions,
    )
    from submarine_jobs.outputs.returned_values import (
        Result as Result,
        has_result as has_result,
        read_result as read_result,
        result_words as result_words,
    )
    from submarine_jobs.outputs.values import parse_names as parse_names, send_values as send_values
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "data_frame": ("metrics_frame",),
            "files": ("download_files", "list_outputs"),
            "metrics": ("MetricsReader", "Row", "read_metrics"),
            "model_versions": ("ModelVersion", "versions"),
            "returned_values": ("Result", "has_result", "read_result", "result_words"),
            "values": ("parse_names", "send_values"),
        },
    )
