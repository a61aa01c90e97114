"""Base of the request handlers: access checks, origins, errors."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
