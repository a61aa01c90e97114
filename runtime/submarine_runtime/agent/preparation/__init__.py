"""What a task needs before its program starts: devices, bundle and inputs."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
