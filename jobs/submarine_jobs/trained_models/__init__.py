"""Trained models: where a version comes from, loading it, publishing it."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
