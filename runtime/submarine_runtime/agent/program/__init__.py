"""One run of the user's program: environment, start, monitoring and end."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
