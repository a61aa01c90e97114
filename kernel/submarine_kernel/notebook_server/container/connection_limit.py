"""Replaced in the container by the runtime's module (``submission.program``)."""

from submarine_runtime.network import ConnectionLimit

__all__ = ["ConnectionLimit"]
