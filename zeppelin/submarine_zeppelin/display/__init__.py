"""Contents of a paragraph: text and terminal output, HTML, job cards and their updates."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
