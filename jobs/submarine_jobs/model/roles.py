"""Roles of a job: kinds of processes, how large they are, and where their containers may be.

Part of the spec (``spec``); does not parse options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Resources:
    """Size of one task: memory in MiB (the program's own), virtual cores, GPUs."""

    memory: int = 2048
    vcores: int = 1
    gpus: int = 0


#: Roles that serve the others and never end by themselves.
UNTRACKED_ROLES = ("ps", "scheduler", "server")
#: Roles that look on: outside the gang, and no fault when they are lost.
SIDECAR_ROLES = ("tensorboard",)
#: Role of the only task of a job that is the kernel of a notebook or console in a container.
KERNEL_ROLE = "kernel"
#: Role of the only task of a job that is a notebook server in a container.
NOTEBOOK_ROLE = "notebook"
KINDS = ("tracked", "untracked", "sidecar")


def usual_kind(role: str) -> str:
    """What a role of this name is unless the user says otherwise."""
    if role in SIDECAR_ROLES:
        return "sidecar"
    return "untracked" if role in UNTRACKED_ROLES else "tracked"


@dataclass(frozen=True)
class Role:
    """A kind of process in a job.

    Parameters
    ----------
    command
        None: run the bundle's program with the job's Python.
    kind
        ``tracked``, ``untracked`` or ``sidecar``; see ``launch.RoleOrders``.
    least
        So many instances are enough to start (``--min-workers``); None: all.
    after
        Roles that must have started before this one does.
    node_label, nodes, racks
        Where its containers may be; empty: anywhere. ``relax`` lets YARN go elsewhere when those
        nodes or racks are full.
    spread
        Prefer nodes that have no task of this role yet.
    avoid
        Nodes that it is not to be placed on.
    python_env, python
        As in ``JobSpec``, for this role only; None: the job's.
    docker_image
        Image of this role's containers; None: the job's.
    processes
        Processes of the program in each container; 0: the framework decides (one a GPU for
        PyTorch, else one).
    """

    name: str = "worker"
    instances: int = 1
    resources: Resources = field(default_factory=Resources)
    command: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    kind: str = "tracked"
    least: int | None = None
    after: tuple[str, ...] = ()
    node_label: str | None = None
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    relax: bool = False
    spread: bool = False
    avoid: tuple[str, ...] = ()
    python_env: str | None = None
    python: str | None = None
    docker_image: str | None = None
    processes: int = 0


#: What a role that shows TensorBoard runs, of this job or of all of the user's; the agent knows the
#: words (``submarine_runtime.tensorboards.role``).
BOARD_COMMAND = "submarine:tensorboard"


def is_board(role: Role) -> bool:
    """Whether a role runs TensorBoard."""
    return (role.command or "").startswith(BOARD_COMMAND)
