"""Check a program before it is submitted: syntax, names, imports, stale cells."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
