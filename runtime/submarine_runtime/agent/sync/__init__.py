"""Synchronization of checkpoints, model and TensorBoard files while the program runs."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
