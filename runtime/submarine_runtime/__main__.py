"""Entry point in containers: ``python -I runtime.zip VERB ...``."""

from __future__ import annotations

import importlib
import os
import sys

VERBS = {
    "agent": "submarine_runtime.agent.main",
    "supervise": "submarine_runtime.coordinator.supervision.supervisor",
    "coordinator": "submarine_runtime.coordinator.main",
    "await": "submarine_runtime.frameworks.helpers.port_wait",
    "rendezvous": "submarine_runtime.frameworks.helpers.rendezvous",
    "tracker": "submarine_runtime.frameworks.helpers.tracker",
    "tensorboard": "submarine_runtime.tensorboards.role",
    "tensorboard-server": "submarine_runtime.tensorboards.server",
}


def main() -> int:
    """Run ``main(arguments) -> exit code`` of the verb's module."""
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb not in VERBS:
        sys.stderr.write("usage: python -I runtime.zip {} ...\n".format("|".join(VERBS)))
        return 2
    code: int = importlib.import_module(VERBS[verb]).main(sys.argv[2:])
    return code


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Do not wait for threads of the live view.
    os._exit(status)
