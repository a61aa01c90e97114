"""The restore point of several tasks: what the snapshots contain, and which are restored."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
