"""Processes of this machine: resource usage, and a guard that ends them with their parent."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
