"""Check of a Zeppelin with the former Submarine interpreter, before it is replaced."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
