"""Format sizes and times, and sanitize untrusted text for display."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
