"""The environment that each framework expects: a registry, and one module for each framework."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
