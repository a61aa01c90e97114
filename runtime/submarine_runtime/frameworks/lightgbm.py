"""LightGBM: the list of machines, for the program's parameters and for its command line.

LightGBM reads no variables. A shim sets the parameters of a training that names no machines. The
command line takes them from the variables.
"""

from __future__ import annotations

from typing import Sequence

from submarine_runtime.frameworks.ranks import collective_tasks, endpoint_of, first_rank, port_of
from submarine_runtime.protocol import Member

IMPORTS = ("lightgbm",)
PRECEDENCE = -3
POLICY = "all"
RENDEZVOUS = "program"
JOIN_CALL = "lightgbm.train() with tree_learner='data'"
ADDRESS_IN_USE = ("Binding port",)
SHIMS = ("shim_lightgbm.py",)


def environment(member: Member, members: Sequence[Member]) -> dict[str, str]:
    """Return machines and the task's port; nothing for a single task."""
    collective = collective_tasks(members)
    rank = first_rank(member, collective)
    if rank is None or len(collective) < 2:
        return {}
    return {
        "LIGHTGBM_LOCAL_LISTEN_PORT": str(port_of(member)),
        "LIGHTGBM_MACHINES": ",".join(endpoint_of(one) for one in collective),
        "LIGHTGBM_NUM_MACHINE": str(len(collective)),
        "LIGHTGBM_RANK": str(rank),
    }
