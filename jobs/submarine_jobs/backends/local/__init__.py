"""The ``local`` backend: the agent as a detached process of this machine."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
