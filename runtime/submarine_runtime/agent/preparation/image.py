"""Check that the container runs the requested image.

A NodeManager without the Docker runtime (DefaultContainerExecutor) ignores an image and starts the
program on the node itself, with another Python and other packages.
"""

from __future__ import annotations

import os
from typing import Mapping

from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol.reasons import EndReason

#: File that this executor leaves in the working directory of each container.
WITHOUT_DOCKER = "default_container_executor.sh"


def image_ignored(directory: str, variables: Mapping[str, str]) -> Ending | None:
    """Return the ending of a task that does not run in its image; None if it does.

    Parameters
    ----------
    directory
        Working directory of the container.
    variables
        Environment of the container, which has YARN's settings.
    """
    if variables.get("YARN_CONTAINER_RUNTIME_TYPE") != "docker":
        return None
    if not os.path.exists(os.path.join(directory, WITHOUT_DOCKER)):
        return None
    image = variables.get("YARN_CONTAINER_RUNTIME_DOCKER_IMAGE", "")[:200]
    return Ending(
        EndReason.LAUNCH_FAILED,
        f"The cluster runs no Docker containers: YARN did not take the image {image} and started "
        "the program on the node itself. Leave the image out, or ask the operator for YARN's "
        "Docker runtime (LinuxContainerExecutor, with docker in "
        "yarn.nodemanager.runtime.linux.allowed-runtimes).",
    )
