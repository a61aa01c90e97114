"""Collected cells of a running kernel, the document and the modules that cells make."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
