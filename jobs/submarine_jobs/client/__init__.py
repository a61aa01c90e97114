"""Session and Job: list, watch, wait for, cancel and repeat jobs."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
