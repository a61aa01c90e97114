"""Resources of this machine: processes, ports, locks and the Java runtime."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
