"""Formats of files: how each is divided into parts, and how a part is read."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
