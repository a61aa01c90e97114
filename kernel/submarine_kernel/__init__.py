"""The kernel "Python + Submarine", kernels in YARN containers, and notebook servers there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Let ``%load_ext submarine_kernel`` do the same as ``%load_ext submarine_magics``."""
    # cost: the Jupyter server imports this package and does not need the magics.
    from submarine_magics import load_ipython_extension as load

    load(shell)
