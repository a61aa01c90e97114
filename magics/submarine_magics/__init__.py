"""The magics ``%submarine`` and ``%%submarine``, loaded with ``%load_ext submarine_magics``.

The public API of the package; its modules are loaded when they are first used.
"""

from submarine_magics.extension import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
