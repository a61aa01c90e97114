"""Start and stop of a cluster: settings and ports, start order, readiness, shutdown."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
