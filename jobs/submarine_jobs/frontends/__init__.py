"""Front ends of the command language: interface, terminal, outcome of a command."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
