"""Jobs that one kernel has started, and the guard that cancels them if the kernel dies."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
