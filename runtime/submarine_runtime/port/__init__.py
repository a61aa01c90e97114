"""The port of a job, of its agents and of its coordinator: TLS, token, requests, agents' links."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
