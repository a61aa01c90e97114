from .job import (
    JobDetails as JobDetails,
    model_json as model_json,
    row_json as row_json,
    view_json as view_json,
)
from .record import Json as Json, event_json as event_json, task_json as task_json
from .series import series_json as series_json
