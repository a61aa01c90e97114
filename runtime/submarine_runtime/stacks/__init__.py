"""The stacks of running programs: take them, fold equal ones, name what the others wait for."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
