from .output import (
    execution_json as execution_json,
    history_text as history_text,
    past_json as past_json,
    status_text as status_text,
    submitted_text as submitted_text,
)
from .run_ids import (
    RUN_PREFIX as RUN_PREFIX,
    execution_id as execution_id,
    is_azkaban_run as is_azkaban_run,
)
from .submission import (
    SubmitOptions as SubmitOptions,
    project_name as project_name,
    run_url as run_url,
    submit as submit,
)
