"""Choose, merge and show the logs of a job's tasks."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
