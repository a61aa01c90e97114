"""Cells that are being executed: request, rewriting, interrupts, threads, assignment."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
