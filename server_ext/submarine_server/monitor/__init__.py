"""Monitor of all jobs of the server's user: index, polls and the job table."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
