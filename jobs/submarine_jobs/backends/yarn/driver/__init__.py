"""skein's driver: a JVM for each user and cluster configuration, and the calls to it."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
