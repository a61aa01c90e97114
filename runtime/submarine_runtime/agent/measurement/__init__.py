"""Measurements of the running program: processes, devices, progress and training scalars."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
