from .guard import Guard as Guard, shell_on_a_pipe as shell_on_a_pipe
from .identity import ProcessIdentity as ProcessIdentity
from .usage import (
    Process as Process,
    ProcessTree as ProcessTree,
    Usage as Usage,
    kernel_memory_kills as kernel_memory_kills,
    read_process as read_process,
    related_processes as related_processes,
)
