"""Snapshots of checkpoints, model versions and TensorBoard files in the job directory."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
