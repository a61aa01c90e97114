"""REST handlers, one module per resource; each module has ``ROUTES``."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
