"""Displayed jobs, metrics and workflow runs, shared by all connections that show them."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
