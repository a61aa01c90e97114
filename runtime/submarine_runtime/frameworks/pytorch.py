"""PyTorch: the variables of ``torchrun``, so that ``init_process_group()`` needs no arguments.

Rank 0 serves the store at ``MASTER_ADDR:MASTER_PORT``. A container corresponds to a node of
torchrun: ``LOCAL_RANK`` counts within it, and within the devices that it sees.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.generic import rendezvous_variables
from submarine_runtime.frameworks.ranks import collective_tasks, first_rank
from submarine_runtime.protocol import Member

IMPORTS = ("torch", "lightning", "pytorch_lightning", "deepspeed", "accelerate")
PRECEDENCE = 2
LATE_IMPORTS = ("lightning_fabric", "transformers", "trl")  # Older ones also run on TensorFlow.
PROCESSES = "gpu"
HOLD_PORTS = True
POLICY = "all"
RENDEZVOUS = "program"
SHIMS = ("shim_lightning.py",)
JOIN_CALL = "Trainer(num_nodes={tasks}) of Lightning, or init_process_group() in other programs"


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return rendezvous and sizes; nothing for a task that takes no part in collectives."""
    collective = collective_tasks(members)
    if first_rank(member, collective) is None:
        return {}
    node = str([one.task for one in collective].index(member.task))
    nodes = str(len(collective))
    variables = rendezvous_variables(collective)
    variables.update(
        GROUP_RANK=node,
        GROUP_WORLD_SIZE=nodes,
        LOCAL_WORLD_SIZE=str(member.processes),
        NNODES=nodes,
        NODE_RANK=node,
    )
    if member.processes > 1:
        variables["OMP_NUM_THREADS"] = "1"  # As torchrun does, because processes share the cores.
    return variables


def processes(member: Member, members: Sequence[Member]) -> list[dict[str, str]]:
    """Return ``RANK`` and ``LOCAL_RANK`` of each process."""
    rank = first_rank(member, collective_tasks(members))
    if rank is None:
        return [{}]
    return [
        {"RANK": str(rank + local), "LOCAL_RANK": str(local)} for local in range(member.processes)
    ]
