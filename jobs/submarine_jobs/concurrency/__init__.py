"""Blocking calls in threads and subprocesses, time limits, and locks between processes."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
