"""Processes of this machine: resource usage, and a guard that ends them with their parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_runtime.processes.guard import Guard as Guard, shell_on_a_pipe as shell_on_a_pipe
    from submarine_runtime.processes.usage import (
        ProcessTree as ProcessTree,
        Usage as Usage,
        family as family,
        kernel_memory_kills as kernel_memory_kills,
        read_process as read_process,
    )
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "guard": ("Guard", "shell_on_a_pipe"),
            "usage": ("ProcessTree", "Usage", "family", "kernel_memory_kills", "read_process"),
        },
    )
