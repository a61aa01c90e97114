"""Build the YARN application of a job: containers, files, scripts; and hand it to the driver."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
