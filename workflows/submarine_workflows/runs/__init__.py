"""Runs of workflows, whatever runs them: lists, views, actions."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
