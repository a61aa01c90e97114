"""Configuration: files, environment and options become one profile; trust in project files."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
