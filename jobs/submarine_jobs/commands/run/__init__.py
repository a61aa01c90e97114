"""The verb ``run``: options, program, checks, dry run, submit."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
