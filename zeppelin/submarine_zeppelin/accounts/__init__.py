"""Cluster user, configuration and YARN driver of each Zeppelin user."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
