"""Read YARN from a container: ResourceManager, queues, waiting reasons, page."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
