"""The verb ``agent``: reads its orders and runs one job's task to its end."""

from __future__ import annotations

import json
import os
import sys
from typing import Sequence

USAGE = "usage: python -I runtime.zip agent --directory DIR"


def main(arguments: Sequence[str]) -> int:
    """Run the task that ``DIR/agent.json`` describes.

    Returns
    -------
    int
        0 if the program succeeded, 1 if not, 2 for orders that make no sense.
    """
    if len(arguments) != 2 or arguments[0] != "--directory":
        sys.stderr.write(USAGE + "\n")
        return 2
    from submarine_runtime.agent.supervisor import Supervisor
    from submarine_runtime.protocol.launch import AgentConfig

    directory = os.path.abspath(arguments[1])
    try:
        with open(os.path.join(directory, "agent.json"), encoding="utf-8") as file:
            config = AgentConfig.from_json(json.load(file))
        with open(os.path.join(directory, "secret.json"), encoding="utf-8") as file:
            secret = json.load(file)
        if not all(isinstance(secret[key], str) for key in ("token", "certificate", "key")):
            raise ValueError("secret.json lacks token, certificate or key")
    except (OSError, ValueError, KeyError, TypeError) as exc:
        sys.stderr.write(f"submarine agent: cannot read the orders in {directory}: {exc!r}\n")
        return 2
    return Supervisor(config, secret, directory).run()
