"""Files that a job reads: localized files and paths in the job's storage."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
