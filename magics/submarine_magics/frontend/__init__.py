"""The notebook as a front end: cards, text, tracebacks and questions in a cell's output."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
