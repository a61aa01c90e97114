"""Notes as programs: paragraphs, command lines, notebook export, wording of messages."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
