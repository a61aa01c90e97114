"""Values that are exchanged between a notebook and a program, without pickle."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
