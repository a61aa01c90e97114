"""The interpreter process that Zeppelin starts: start, thrift methods, log, shutdown."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
