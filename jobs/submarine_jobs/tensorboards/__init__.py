"""TensorBoard on this machine over the files of jobs: fetched as they grow, one process a set.

For the server extension and the command line alike. Knows no Jupyter; nothing here decides who may
look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.tensorboards.instance import (
        MAX_BYTES as MAX_BYTES,
        MAX_JOBS as MAX_JOBS,
        Board as Board,
        scratch_parent as scratch_parent,
    )
    from submarine_jobs.tensorboards.process import require_tensorboard as require_tensorboard
    from submarine_jobs.tensorboards.scratch import Scratch as Scratch, remove_stale as remove_stale
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "instance": ("Board", "MAX_BYTES", "MAX_JOBS", "scratch_parent"),
            "process": ("require_tensorboard",),
            "scratch": ("Scratch", "remove_stale"),
        },
    )
