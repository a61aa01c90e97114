"""The kernel "Python + Submarine": ipykernel with the magics loaded from the start.

Adds nothing else to ipykernel; later a kernel that runs inside a container of the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Let ``%load_ext submarine_kernel`` do what ``%load_ext submarine_magics`` does."""
    from submarine_magics import load_ipython_extension as load

    load(shell)
