from .acquisition import end_kernel as end_kernel, get_kernel as get_kernel
from .pending_starts import (
    PendingStart as PendingStart,
    end_starts as end_starts,
    list_pending as list_pending,
    listening as listening,
)
from .remote_kernel import RemoteKernel as RemoteKernel
from .socket_directory import SocketDirectory as SocketDirectory
from .start_progress import StartProgress as StartProgress
from .submission import (
    KernelRequest as KernelRequest,
    program as program,
    run_options as run_options,
    session_of as session_of,
    spec_of_kernel as spec_of_kernel,
)
from .supervisor_client import KernelLostError as KernelLostError
