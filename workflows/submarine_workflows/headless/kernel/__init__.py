"""Kernel of a run: its client, interruptible waits, and code outside the notebook."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
