"""Read and write workflow files: Flow 2.0 YAML, Flow 1.0 job files."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
