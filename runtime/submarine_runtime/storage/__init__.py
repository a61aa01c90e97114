"""The job directory as containers see it, and the scratch directory of a container."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
