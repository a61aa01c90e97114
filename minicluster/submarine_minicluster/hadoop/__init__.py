"""Hadoop's jars, configuration files, client commands, daemons and REST interfaces."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
