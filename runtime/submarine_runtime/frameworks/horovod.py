"""Horovod without MPI: gloo's variables, and the rendezvous that ``horovodrun`` would serve.

Each container counts as one host, so ``hvd.local_rank()`` counts the devices that it sees. The
chief's agent serves the rendezvous (``rendezvous``) on the chief's port.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import collective_tasks, first_rank, port_of, world_size
from submarine_runtime.frameworks.registry import Helper, wait_for_chief
from submarine_runtime.protocol import Member

IMPORTS = ("horovod",)
PRECEDENCE = 4
PROCESSES = "gpu"
PORTS = 2  # The rendezvous, and a port that opens once it serves.
HOLD_PORTS = True
POLICY = "all"
RENDEZVOUS = "helper"
JOIN_CALL = "hvd.init()"


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return sizes, the rendezvous and the choice of gloo."""
    collective = collective_tasks(members)
    if first_rank(member, collective) is None:
        return {}
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": collective[0].address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port_of(collective[0])),
        "HOROVOD_HOSTNAME": _host(member),
        "HOROVOD_LOCAL_SIZE": str(member.processes),
        "HOROVOD_SIZE": str(world_size(collective)),
    }


def processes(member: Member, members: Sequence[Member]) -> list[dict[str, str]]:
    """Return ranks in the world, in the container, and among the processes of one local rank."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None:
        return [{}]
    made = []
    for local in range(member.processes):
        across = [one.task for one in collective if one.processes > local]
        made.append(
            {
                "HOROVOD_RANK": str(rank + local),
                "HOROVOD_LOCAL_RANK": str(local),
                "HOROVOD_CROSS_RANK": str(across.index(member.task)),
                "HOROVOD_CROSS_SIZE": str(len(across)),
            }
        )
    return made


def helpers(member: Member, members: Sequence[Member]) -> list[Helper]:
    """Return the rendezvous for the chief, and for the other tasks a helper that waits for it."""
    collective = collective_tasks(members)
    if first_rank(member, collective) is None:
        return []
    if member.task != collective[0].task:
        return [wait_for_chief(collective[0].address, collective[0].ports[1])]
    place = ("--address", member.address, "--port", str(port_of(member)))
    ready = ("--ready", str(member.ports[1])) if len(collective) > 1 else ()
    command = (
        "{agent}",
        "-I",
        "{runtime}",
        "rendezvous",
        *place,
        *ready,
        "--sizes",
        _sizes(collective),
    )
    return [Helper(command, "rendezvous ready")]


def _host(member: Member) -> str:
    """Return a name of the container, not of its machine: containers do not share devices."""
    return f"{member.role}-{member.index}"


def _sizes(collective: Sequence[Member]) -> str:
    """Return the number of processes in each of gloo's scopes."""
    sizes = {"global": world_size(collective)}
    for one in collective:
        sizes[f"local_{_host(one)}"] = one.processes
    for local in range(max(one.processes for one in collective)):
        sizes[f"cross_{local}"] = sum(one.processes > local for one in collective)
    return ",".join(f"{scope}={size}" for scope, size in sizes.items())
