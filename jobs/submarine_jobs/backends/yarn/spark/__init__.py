"""Submit Spark jobs with spark-submit, in cluster mode; their driver is the agent of the job."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
