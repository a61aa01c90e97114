"""State machine of a distributed job: events in, actions out; no clock, thread or socket."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
