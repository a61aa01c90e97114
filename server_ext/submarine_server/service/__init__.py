"""Access to the jobs of the server's user: sessions, job details, bounded blocking calls."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
