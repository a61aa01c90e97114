"""The module of the runtime with this name; ``starting.program`` puts its source in this place."""

from submarine_runtime.network import ConnectionLimit

__all__ = ["ConnectionLimit"]
