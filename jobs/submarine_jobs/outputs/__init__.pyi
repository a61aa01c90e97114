from .data_frame import metrics_frame as metrics_frame
from .event_scalars import (
    ScalarPoint as ScalarPoint,
    read_event_scalars as read_event_scalars,
)
from .files import (
    download_files as download_files,
    list_outputs as list_outputs,
    place_below as place_below,
)
from .interrupted_outputs import settle_outputs as settle_outputs
from .metrics import MetricsReader as MetricsReader, Row as Row, read_metrics as read_metrics
from .model_versions import (
    ModelVersion as ModelVersion,
    download_version as download_version,
    find_version as find_version,
    versions as versions,
)
from .returned_values import (
    Result as Result,
    format_results as format_results,
    has_result as has_result,
    read_result as read_result,
)
from .values import (
    parse_names as parse_names,
    send_values as send_values,
    unpack_values as unpack_values,
)
