"""The agent's port: status, logs, streams and tunnels of a running task."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
