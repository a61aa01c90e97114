"""Kernels in containers of the cluster: the provisioner ``submarine-yarn``.

``container.supervisor`` is the program of the job, in the container. ``remote_kernel`` is its
client on the notebook's side. A tunnel through the port of the job connects them.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
