"""Set ``USE_LIBUV=0`` where PyTorch was built without libuv, which it asks for by default.

This file is copied beside the launcher, which calls ``activate`` after ``torch.distributed`` has
imported the module. Processes that a library starts inherit the variable.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any


def activate(module: Any) -> None:
    """Ask for a store with libuv, at any free port, because only its constructor knows."""
    if "USE_LIBUV" in os.environ:
        return
    try:
        module.TCPStore("127.0.0.1", 0, 1, True, wait_for_workers=False, use_libuv=True)
    except RuntimeError as exc:
        if "without libuv" in str(exc):
            os.environ["USE_LIBUV"] = "0"
    except TypeError:
        pass  # A PyTorch before 2.1 does not know libuv.
