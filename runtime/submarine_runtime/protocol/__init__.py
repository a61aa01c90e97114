"""Formats that both sides of a job share: states, end reasons, events, record, paths, requests.

Data and rules only: no module here opens a socket or starts a process. Versioned by
``PROTOCOL_VERSION``. A newer client reads what an older agent wrote: fields are only added, and
readers ignore unknown fields.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
