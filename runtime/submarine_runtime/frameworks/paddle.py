"""PaddlePaddle: the variables of ``paddle.distributed.launch``; one process in a container."""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import collective_tasks, endpoint_of, first_rank
from submarine_runtime.protocol import Member

IMPORTS = ("paddle",)
POLICY = "all"
RENDEZVOUS = "program"
JOIN_CALL = "paddle.distributed.init_parallel_env()"


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return endpoints and the number of this trainer; nothing for a single task."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or len(collective) < 2:
        return {}
    variables = {
        "PADDLE_CURRENT_ENDPOINT": endpoint_of(member),
        "PADDLE_MASTER": endpoint_of(collective[0]),
        "PADDLE_TRAINERS_NUM": str(len(collective)),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoint_of(one) for one in collective),
        "PADDLE_TRAINER_ID": str(rank),
        "TRAINING_ROLE": "TRAINER",
    }
    if not member.gpus:
        variables["PADDLE_DISTRI_BACKEND"] = "gloo"
    return variables
