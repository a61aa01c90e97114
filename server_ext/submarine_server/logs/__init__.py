"""Logs of running and ended jobs: list, read by offset, follow, search."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
