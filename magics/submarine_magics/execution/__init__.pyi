from .assignment import bind as bind, called_from_cell as called_from_cell
from .cell_threads import (
    has_thread_errors as has_thread_errors,
    record_thread_errors as record_thread_errors,
    take_thread_errors as take_thread_errors,
    threads_of_cells as threads_of_cells,
)
from .executions import (
    Execution as Execution,
    Executions as Executions,
    current_request as current_request,
)
from .headless_mode import (
    headless_settings as headless_settings,
    runner_settings as runner_settings,
)
from .interrupts import (
    allow_interrupts as allow_interrupts,
    defer_interrupts as defer_interrupts,
    ignore_interrupts as ignore_interrupts,
)
from .transformers import (
    COLLECT as COLLECT,
    COLLECT_ONLY as COLLECT_ONLY,
    HELP_REQUEST as HELP_REQUEST,
    ONLY_CALL as ONLY_CALL,
    rewrite_first_line as rewrite_first_line,
    rewrite_question as rewrite_question,
    rewrite_tagged_cell as rewrite_tagged_cell,
)
