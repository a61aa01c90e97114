"""TensorBoard below the server's base URL: ``submarine/tensorboard/<job>[,<job>...]/``.

What TensorBoard shows and its process are ``submarine_jobs.tensorboards``.
"""

from __future__ import annotations

from submarine_server.tensorboard.handler import PAGES
from submarine_server.tensorboard.registry import attach

__all__ = ["PAGES", "attach"]
