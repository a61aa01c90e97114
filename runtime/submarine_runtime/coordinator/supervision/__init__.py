"""Start the coordinator, and start it again when it dies or hangs."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
