"""Data of a job without I/O: spec, roles, profile, view, quantities."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
