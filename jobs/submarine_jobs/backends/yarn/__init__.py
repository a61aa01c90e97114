"""The yarn backend: jobs as skein applications on a YARN cluster."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
