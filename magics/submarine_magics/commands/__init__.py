"""Command lines of ``%submarine``: completion, help, defaults, headless options."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
