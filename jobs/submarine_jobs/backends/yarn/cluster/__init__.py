"""The cluster's state through the ResourceManager's REST interface: applications, queues, nodes."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
