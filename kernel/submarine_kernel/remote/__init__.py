"""Kernels in containers of the cluster: the provisioner ``submarine-yarn``.

``container.keeper`` is the program of the job, in the container. ``remote_kernel`` is its client on
the notebook's side. They are connected by a tunnel through the port of the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_kernel.remote.pending_starts import (
        PendingStart as PendingStart,
        end_starts as end_starts,
        list_pending as list_pending,
        listening as listening,
    )
    from submarine_kernel.remote.socket_directory import SocketDirectory as SocketDirectory
    from submarine_kernel.remote.submission import (
        KernelRequest as KernelRequest,
        program as program,
        run_options as run_options,
        session_of as session_of,
        spec_of_kernel as spec_of_kernel,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "pending_starts": (
                "PendingStart",
                "end_starts",
                "list_pending",
                "listening",
            ),
            "socket_directory": ("SocketDirectory",),
            "submission": (
                "KernelRequest",
                "program",
                "run_options",
                "session_of",
                "spec_of_kernel",
            ),
        },
    )
