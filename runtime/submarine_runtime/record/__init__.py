"""The job record while it grows, and advice for the owner of a job."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
