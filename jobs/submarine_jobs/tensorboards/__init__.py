"""TensorBoard on this machine over the files of jobs: fetched as they grow, one process a set.

For the server extension and the command line alike. Knows no Jupyter; nothing here decides who may
look.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
