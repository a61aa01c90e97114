"""TensorBoard over the event files of jobs, for the server extension and the command line.

Event files are copied to this machine while they grow. Each set of jobs has one TensorBoard
process. Callers check the permission to see a job.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
