"""GPUs of a node: detection, locks, claims and measurements."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
