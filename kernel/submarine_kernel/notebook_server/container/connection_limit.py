"""Stands for the runtime's module: ``submission.program`` ships that one under this name."""

from submarine_runtime.network import ConnectionLimit

__all__ = ["ConnectionLimit"]
