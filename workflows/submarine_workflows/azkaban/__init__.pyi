from .run_ids import (
    RUN_PREFIX as RUN_PREFIX,
    execution_id as execution_id,
    is_azkabans as is_azkabans,
)
from .submission import (
    Wishes as Wishes,
    project_name as project_name,
    run_url as run_url,
    submit as submit,
)
