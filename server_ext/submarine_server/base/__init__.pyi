from .errors import ApiError as ApiError, api_error as api_error
from .handlers import (
    NDJSON as NDJSON,
    PLAIN_TEXT as PLAIN_TEXT,
    Answer as Answer,
    BaseHandler as BaseHandler,
    guarded as guarded,
    require_job_id as require_job_id,
    service_of as service_of,
)
