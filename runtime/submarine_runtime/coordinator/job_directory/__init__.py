"""The job directory as the coordinator writes it: claim, outputs, takeover, write gate."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
