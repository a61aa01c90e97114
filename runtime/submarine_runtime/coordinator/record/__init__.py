"""The job's record and events while the job runs, and the journal of the state machine."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
