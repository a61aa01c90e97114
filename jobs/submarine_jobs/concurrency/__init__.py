"""Run blocking calls in threads and subprocesses, with time limits."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
