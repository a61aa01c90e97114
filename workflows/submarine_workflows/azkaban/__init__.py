"""Azkaban: compile workflows to projects and call the web server."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
