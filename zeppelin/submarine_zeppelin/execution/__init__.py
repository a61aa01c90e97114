"""Runs of paragraphs, their outputs, and the interpreters that run them."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
