"""The interpreters ``%submarine.python`` and ``%submarine.sh``, which run on Zeppelin's machine.

The session of ``%submarine.python`` may run in a container of the cluster instead.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
