"""Whether the container is of the image that was asked for.

A NodeManager without the Docker runtime (DefaultContainerExecutor) takes no notice of an image: it
starts the program on the node itself, which would be another Python with other packages.
"""

from __future__ import annotations

import os
from typing import Mapping

from submarine_runtime.agent.program import Ending
from submarine_runtime.protocol.reasons import EndReason

#: What that executor leaves in the working directory of each container that it starts.
WITHOUT_DOCKER = "default_container_executor.sh"


def image_ignored(directory: str, variables: Mapping[str, str]) -> Ending | None:
    """The end of a task that is not in its image.

    Parameters
    ----------
    directory
        Working directory of the container.
    variables
        What YARN was told: the environment of the container.
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
