"""The outputs of a job: returned values, models, metrics, files."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
