from .pieces import (
    follow_log as follow_log,
    log_outcome as log_outcome,
    start_offset as start_offset,
    stream_log as stream_log,
)
from .tasks import (
    chosen_attempt as chosen_attempt,
    chosen_tasks as chosen_tasks,
    complete_tasks as complete_tasks,
    other_logs as other_logs,
    unsaved_attempts as unsaved_attempts,
)
