"""Run notebooks through jupyter-scheduler."""

from submarine_jobs.extras import require_extra
from submarine_runtime.lazy import lazy_exports

# A server that has this execution manager in its configuration must not start without the extra.
require_extra("workflows")
__getattr__, __dir__ = lazy_exports(__name__)
