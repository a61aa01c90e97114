"""TensorBoard below the server's base URL: ``submarine/tensorboard/<job>[,<job>...]/``.

What TensorBoard shows and its process are ``submarine_jobs.tensorboards``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_server.tensorboard.handler import PAGES as PAGES
    from submarine_server.tensorboard.registry import attach as attach
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "handler": ("PAGES",),
            "registry": ("attach",),
        },
    )
