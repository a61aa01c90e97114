"""Read a job's logs: live from its port, then from shipped segments; by offset."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
