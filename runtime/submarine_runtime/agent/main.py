"""The verb ``agent``: read the configuration and run one task to its end.

In a container of a distributed job the environment names a coordinator, and ``gang_task`` runs the
task. Otherwise it is the job's only task, and ``single_task`` runs it.
"""

from __future__ import annotations

import os
import sys
from typing import Sequence

from submarine_runtime.protocol import COORDINATOR_VARIABLE, AgentConfig, layout, read_configuration

USAGE = "usage: python -I runtime.zip agent --directory DIR"


def main(arguments: Sequence[str]) -> int:
    """Run the task that ``DIR/agent.json`` describes.

    Returns
    -------
    int
        0 if the program succeeded (in a distributed job: if the coordinator released the agent), 1
        if not, 2 for an invalid configuration.
    """
    if len(arguments) != 2 or arguments[0] != "--directory":
        sys.stderr.write(USAGE + "\n")
        return 2
    directory = os.path.abspath(arguments[1])
    try:
        config, secret = read_configuration(AgentConfig, directory, layout.AGENT)
    except ValueError as exc:
        sys.stderr.write(f"submarine agent: {exc}\n")
        return 2
    if COORDINATOR_VARIABLE in os.environ:
        # cost: a container runs one of the two agents.
        from submarine_runtime.agent.gang_task import TaskAgent

        try:
            agent = TaskAgent(config, secret, directory)
        except (ValueError, KeyError) as exc:
            sys.stderr.write(f"submarine agent: the environment is invalid: {exc!r}\n")
            return 2
        return agent.run()
    # cost: a container runs one of the two agents.
    from submarine_runtime.agent.single_task import SingleTaskAgent

    return SingleTaskAgent(config, secret, directory).run()
