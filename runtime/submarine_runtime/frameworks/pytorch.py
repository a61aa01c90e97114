"""PyTorch: the variables of ``torchrun``, so that ``init_process_group()`` needs no arguments.

Rank 0 serves the store at ``MASTER_ADDR:MASTER_PORT``. A container corresponds to a node of
torchrun: ``LOCAL_RANK`` counts within it, and within the devices that it sees.
"""

from __future__ import annotations

from typing import Mapping, Sequence

from submarine_runtime.frameworks.generic import rendezvous_variables
from submarine_runtime.frameworks.ranks import collective_tasks, first_rank, world_size
from submarine_runtime.protocol import AgentConfig, Member

IMPORTS = ("torch", "lightning", "pytorch_lightning", "deepspeed", "accelerate")
PRECEDENCE = 2
PROJECTS = ("torch",)
#: Where the environment is not on this machine; transformers and diffusers require no framework.
LATE_IMPORTS = (
    *("lightning_fabric", "transformers", "trl", "peft", "diffusers", "timm", "torchvision"),
    *("torchaudio", "fastai", "ultralytics", "sentence_transformers", "megatron"),
)
PROCESSES = "gpu"
HOLD_PORTS = True
POLICY = "all"
RENDEZVOUS = "program"
JOIN_CALL = "Trainer(num_nodes={tasks}) of Lightning, or init_process_group() in other programs"
SHIMS = ("shim_lightning.py", "shim_torch__distributed__rendezvous.py")


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return rendezvous and sizes; nothing for a task that takes no part in collectives."""
    collective = collective_tasks(members)
    if first_rank(member, collective) is None:
        return {}
    node = str([one.task for one in collective].index(member.task))
    nodes = str(len(collective))
    local = str(member.processes)
    variables = rendezvous_variables(collective)
    variables.update(
        GROUP_RANK=node,
        GROUP_WORLD_SIZE=nodes,
        LOCAL_WORLD_SIZE=local,
        NNODES=nodes,
        NODE_RANK=node,
    )
    if world_size(collective) > 1:
        variables.update(
            # Defaults of Lightning's Trainer and Fabric: they would train one model in each node.
            LT_DEVICES=local,
            LT_NUM_NODES=nodes,
            PL_TRAINER_DEVICES=local,
            PL_TRAINER_NUM_NODES=nodes,
            ROLE_NAME=member.role,
            ROLE_WORLD_SIZE=variables["WORLD_SIZE"],  # torchrun has one role.
            TORCHELASTIC_USE_AGENT_STORE="False",
            TORCH_NCCL_ASYNC_ERROR_HANDLING="1",
        )
    if member.processes > 1:
        variables["OMP_NUM_THREADS"] = "1"  # As torchrun does, because processes share the cores.
    return variables


def launch(config: AgentConfig, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which libraries see that another program has started all ranks."""
    if variables.get("WORLD_SIZE", "1") == "1":
        return {}
    return {
        "TORCHELASTIC_MAX_RESTARTS": str(config.spec.restart_limit),
        "TORCHELASTIC_RESTART_COUNT": str(config.epoch - 1),
        "TORCHELASTIC_RUN_ID": config.record.job_id,
    }


def processes(member: Member, members: Sequence[Member]) -> list[dict[str, str]]:
    """Return the ranks of each process."""
    collective = collective_tasks(members)
    first = first_rank(member, collective)
    if first is None:
        return [{}]
    made = []
    for local in range(member.processes):
        rank = str(first + local)
        made.append({"RANK": rank, "LOCAL_RANK": str(local)})
        if world_size(collective) > 1:
            made[-1]["ROLE_RANK"] = rank
    return made
