from .daemon_thread import background_loop as background_loop, in_thread as in_thread
from .locks import file_lock as file_lock
from .subprocess_calls import (
    SubprocessCallError as SubprocessCallError,
    call_in_subprocess as call_in_subprocess,
    use_subprocesses as use_subprocesses,
    uses_subprocesses as uses_subprocesses,
)
from .time_limits import (
    call_timeout as call_timeout,
    call_with_timeout as call_with_timeout,
    current_timeout as current_timeout,
    fail_further_calls as fail_further_calls,
)
