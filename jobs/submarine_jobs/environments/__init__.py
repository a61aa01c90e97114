"""Pack the kernel's Python environment and upload it, once per content.

``inventory`` lists the files of the environment, ``layers`` compares them with those of an earlier
archive, ``archive`` packs them, ``provision`` uploads them to the ``cache`` of the job root. This
package does not run in containers. The local backend packs no environment.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
