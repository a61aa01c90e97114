"""Zeppelin's thrift protocol: sockets, access control, server, client, conversion."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
