"""The verb ``coordinator``: read the configuration and run one distributed job."""

from __future__ import annotations

import os
import sys
from typing import Sequence

from submarine_runtime.coordinator.coordinator import Coordinator
from submarine_runtime.coordinator.supervision import INTERNAL_ERROR_CODE
from submarine_runtime.protocol import CoordinatorConfig, layout, read_configuration
from submarine_runtime.yarn import write_traceback

USAGE = "usage: python -I runtime.zip coordinator [--master PID:START] --directory DIR"


def main(arguments: Sequence[str]) -> int:
    """Run the job that ``DIR/coordinator.json`` describes.

    Returns
    -------
    int
        0 if the job succeeded, 1 if not, 2 for invalid arguments or configuration, 70 for an
        internal error, after which the supervisor starts a new coordinator.
    """
    options = dict(zip(arguments[::2], arguments[1::2]))
    directory, master = options.pop("--directory", ""), options.pop("--master", "")
    if options or not directory or len(arguments) % 2:
        sys.stderr.write(USAGE + "\n")
        return 2
    directory = os.path.abspath(directory)
    try:
        config, secret = read_configuration(CoordinatorConfig, directory, layout.COORDINATOR)
    except ValueError as exc:
        sys.stderr.write(f"submarine coordinator: {exc}\n")
        return 2
    try:
        return Coordinator(config, secret, directory, master).run()
    except Exception:
        write_traceback()
        return INTERNAL_ERROR_CODE
