"""The coordinator's port: status, logs and streams for clients."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
