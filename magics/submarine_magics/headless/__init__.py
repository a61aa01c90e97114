"""Wait for the jobs of a headless run at the end of a cell or of the run."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
