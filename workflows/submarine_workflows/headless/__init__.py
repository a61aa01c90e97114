"""Unattended notebook runs: the runner, signals and limits, and papermill's engine.

This package is independent of workflows: a node's command is one run of one notebook.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
