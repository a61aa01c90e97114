"""The websocket of a page: one connection with several subscriptions."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
