"""Any program: the variables by which XLearning (Hbox), TonY and torchrun describe a gang.

A single task gets none of them. The result of ``gang_variables`` is set for every framework,
because scripts for those systems read it beside the framework's own variables.
"""

from __future__ import annotations

import json
from typing import Iterable, Sequence

from submarine_runtime.frameworks.ranks import (
    cluster_of,
    collective_tasks,
    first_rank,
    port_of,
    world_size,
)
from submarine_runtime.protocol import Member

#: Variables with the number of processes or their groups; RANK and LOCAL_RANK are set for each
#: process.
SIZES = frozenset(
    {
        *("WORLD", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES"),
        *("GROUP_RANK", "GROUP_WORLD_SIZE"),
    }
)
PROCESSES = "requested"
RESTART_IN_PLACE = True  # It imports no known framework with collective operations.
POLICY = "all"
RENDEZVOUS = "program"


def policy(roles: Iterable[str]) -> str:
    """Return ``chief`` if there is one, else ``all``: all workers must succeed."""
    return "chief" if {"chief", "master"}.intersection(roles) else "all"


def gang_variables(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return the variables that describe the gang and this task."""
    gang = [one for one in members if one.kind != "sidecar"]
    if len(gang) < 2:
        return {}
    cluster = cluster_of(gang)
    collective = collective_tasks(gang)
    spec = json.dumps(cluster)
    return {
        "CLUSTER_SPEC": spec,
        "DISTRIBUTED_MODE": "GANG",
        "IS_CHIEF": str(bool(collective) and collective[0].task == member.task).lower(),
        "JOB_NAME": member.role,
        "TASK_INDEX": str(member.index),
        "TASK_NUM": str(len(cluster.get(member.role, ()))),
        "TF_CLUSTER_DEF": spec,
        "TF_INDEX": str(member.index),
        "TF_ROLE": member.role,
    }


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return the rendezvous for tasks that take part in collective operations."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or world_size(collective) < 2:
        return {}
    return rendezvous_variables(collective)


def rendezvous_variables(collective: Sequence[Member]) -> dict[str, str]:
    """Return the variables of the rendezvous: the chief's address and first port."""
    address, port, size = (
        collective[0].address,
        str(port_of(collective[0])),
        str(world_size(collective)),
    )
    host = f"[{address}]" if ":" in address else address
    return {
        "INIT_METHOD": f"tcp://{host}:{port}",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD": size,
        "WORLD_SIZE": size,
        "master_addr": address,
        "master_port": port,
    }


def processes(member: Member, members: Sequence[Member]) -> list[dict[str, str]]:
    """Return ``RANK`` and ``LOCAL_RANK`` of each process."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or world_size(collective) < 2:
        return [{} for _ in range(max(1, member.processes))]
    return [
        {"RANK": str(rank + local), "LOCAL_RANK": str(local)} for local in range(member.processes)
    ]
