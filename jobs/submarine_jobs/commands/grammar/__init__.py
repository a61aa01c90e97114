"""Parse and run command lines: verbs, groups, shared options, usage errors, completion."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
