"""The Chromium of this machine."""

from __future__ import annotations

import os
import shutil
from typing import Any

#: The first that is installed is used. The shell has no user interface.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium_arguments(*more: str) -> dict[str, Any]:
    """Return the arguments of Playwright's ``launch``; ``more`` are words of the command line.

    Raises
    ------
    FileNotFoundError
        If there is no Chromium.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise FileNotFoundError(
            "There is no Chromium on this machine: run scripts/setup.sh chromium."
        )
    # The sandbox does not work for root.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    return {"executable_path": path, "args": ["--disable-dev-shm-usage", *sandbox, *more]}
