"""A kernel in a container of the cluster: the provisioner ``submarine-yarn`` and its two ends.

``keeper`` is the program of the job, in the container; ``owner`` is who holds it, on the notebook's
side; between them is a tunnel through the port of the job (``submarine_jobs.access.tunnel``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_kernel.remote.pending_starts import (
        Start as Start,
        end_starts as end_starts,
        going_on as going_on,
        listening as listening,
    )
    from submarine_kernel.remote.socket_directory import SocketDirectory as SocketDirectory
    from submarine_kernel.remote.submission import (
        Asked as Asked,
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
            "pending_starts": ("Start", "end_starts", "going_on", "listening"),
            "socket_directory": ("SocketDirectory",),
            "submission": ("Asked", "program", "run_options", "session_of", "spec_of_kernel"),
        },
    )
