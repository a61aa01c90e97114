"""Entry point of the kernel process: ``python -m submarine_kernel -f CONNECTION_FILE``.

Like ipykernel's launcher, it removes the working directory from ``sys.path`` while it loads, so
that files of the user do not shadow libraries. IPython adds the directory again.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.path[0] == "" or Path(sys.path[0]) == Path.cwd():
        del sys.path[0]

    # After the change of sys.path.
    from submarine_kernel.app import SubmarineKernelApp

    SubmarineKernelApp.launch_instance()
