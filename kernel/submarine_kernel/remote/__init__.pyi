from .pending_starts import (
    PendingStart as PendingStart,
    end_starts as end_starts,
    list_pending as list_pending,
    listening as listening,
)
from .socket_directory import SocketDirectory as SocketDirectory
from .submission import (
    KernelRequest as KernelRequest,
    program as program,
    run_options as run_options,
    session_of as session_of,
    spec_of_kernel as spec_of_kernel,
)
