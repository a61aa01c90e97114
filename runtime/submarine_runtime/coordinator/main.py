"""The verb ``coordinator``: reads its orders and brings one distributed job to its end."""

from __future__ import annotations

import json
import os
import sys
from typing import Sequence

USAGE = "usage: python -I runtime.zip coordinator [--master PID:START] --directory DIR"


def main(arguments: Sequence[str]) -> int:
    """Coordinate the job that ``DIR/coordinator.json`` describes.

    Returns
    -------
    int
        0 if the job succeeded, 1 if not, 2 for orders that make no sense, 70 for an error of our
        own after which a new coordinator goes on.
    """
    options = dict(zip(arguments[::2], arguments[1::2]))
    directory, master = options.pop("--directory", ""), options.pop("--master", "")
    if options or not directory or len(arguments) % 2:
        sys.stderr.write(USAGE + "\n")
        return 2
    from submarine_runtime.coordinator.coordinator import Performance
    from submarine_runtime.coordinator.supervision import CRASHED
    from submarine_runtime.protocol import layout
    from submarine_runtime.protocol.coordinator_config import CoordinatorConfig

    directory = os.path.abspath(directory)
    try:
        with open(os.path.join(directory, layout.COORDINATOR), encoding="utf-8") as file:
            config = CoordinatorConfig.from_json(json.load(file))
        with open(os.path.join(directory, layout.SECRET), encoding="utf-8") as file:
            secret = json.load(file)
        if not all(isinstance(secret[key], str) for key in ("token", "certificate", "key")):
            raise ValueError("secret.json lacks token, certificate or key")
    except (OSError, ValueError, KeyError, TypeError) as exc:
        sys.stderr.write(f"submarine coordinator: cannot read the orders in {directory}: {exc!r}\n")
        return 2
    try:
        return Performance(config, secret, directory, master).run()
    except Exception:
        from submarine_runtime.yarn import write_traceback

        write_traceback()
        return CRASHED
