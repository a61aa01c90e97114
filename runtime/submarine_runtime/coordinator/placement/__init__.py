"""Request and release containers: YARN through skein, or processes of this machine."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
