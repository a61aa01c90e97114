"""``submarine doctor``: independent checks of this machine and the cluster, each with its fix.

Looks and never repairs. A check knows nothing of the others; ``runner`` gives each its time limit.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
