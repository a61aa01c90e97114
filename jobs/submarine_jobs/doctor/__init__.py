"""``submarine doctor``: independent checks of this machine and the cluster, each with its fix.

The checks change nothing. ``runner`` runs each check with a timeout.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
