"""Entry point of the kernel process: ``python -m submarine_kernel -f CONNECTION_FILE``.

As ipykernel's own launcher it takes the working directory off ``sys.path`` while it loads, so that
a file of the user's cannot stand in for a library; IPython puts it back.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.path[0] == "" or Path(sys.path[0]) == Path.cwd():
        del sys.path[0]

    from submarine_kernel.app import SubmarineKernelApp

    SubmarineKernelApp.launch_instance()
