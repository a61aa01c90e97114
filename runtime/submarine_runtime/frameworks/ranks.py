"""Ranks, world size and addresses of the tasks in collective operations, for every framework.

All tracked tasks except evaluators take part in collective operations; servers, schedulers and
sidecars do not.
"""

from __future__ import annotations

import socket
from typing import Sequence

from submarine_runtime.protocol import Member, chief_of

#: Role that reads the checkpoints of the other tasks and does not take part in their training.
EVALUATOR = "evaluator"
#: Roles that never take part in a collective operation.
NOT_COLLECTIVE_ROLES = ("ps", "scheduler", "server", EVALUATOR, "tensorboard")


def collective_tasks(members: Sequence[Member]) -> list[Member]:
    """Return the tasks in collective operations: the chief, then in the order of ``members``."""
    collective = [
        one for one in members if one.kind == "tracked" and one.role not in NOT_COLLECTIVE_ROLES
    ]
    if collective:
        chief = chief_of(collective)
        collective.remove(chief)
        collective.insert(0, chief)
    return collective


def first_rank(member: Member, collective: Sequence[Member]) -> int | None:
    """Return the rank of the first process of ``member``; None if it is not in `collective`."""
    rank = 0
    for one in collective:
        if one.task == member.task:
            return rank
        rank += one.processes
    return None


def world_size(collective: Sequence[Member]) -> int:
    """Return the number of processes of these tasks."""
    return sum(one.processes for one in collective)


def port_of(member: Member) -> int:
    """Return its first reserved port.

    A single task has reserved none; it gets a port that is free at present.
    """
    if member.ports:
        return member.ports[0]
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((member.address, 0))
        return int(probe.getsockname()[1])


def endpoint_of(member: Member) -> str:
    """Return ``address:port``, with brackets around an IPv6 address."""
    host = f"[{member.address}]" if ":" in member.address else member.address
    return f"{host}:{member.ports[0] if member.ports else 0}"


def cluster_of(members: Sequence[Member]) -> dict[str, list[str]]:
    """Return role -> addresses with ports, in order of index."""
    cluster: dict[str, list[str]] = {}
    for member in sorted(members, key=lambda one: one.index):
        cluster.setdefault(member.role, []).append(endpoint_of(member))
    return {role: cluster[role] for role in dict.fromkeys(one.role for one in members)}
