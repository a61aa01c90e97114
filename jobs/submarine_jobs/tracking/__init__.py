"""State of jobs that is not in one handle: local index, observation, closing, leases."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
