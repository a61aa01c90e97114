"""Compute the total size of a gang, and the number of its containers that fit on the nodes."""

from __future__ import annotations

from collections.abc import Iterable

from submarine_jobs.backends.yarn.cluster import Node, Size
from submarine_jobs.model import JobSpec, Role


def total(parts: Iterable[tuple[Size, int]]) -> Size:
    """Return the sum of sizes, each multiplied by its number."""
    found = list(parts)
    return Size(
        sum(size.memory * count for size, count in found),
        sum(size.vcores * count for size, count in found),
        sum(size.gpus * count for size, count in found),
    )


def fitting(role: Role, size: Size, nodes: Iterable[Node]) -> int:
    """Return the number of containers of ``size`` that fit on the empty nodes of ``role``."""
    return sum(_times(size, node.total) for node in nodes if may_use(role, node))


def may_use(role: Role, node: Node) -> bool:
    """Whether label, node names and racks of ``role`` allow ``node``."""
    if role.node_label and role.node_label not in node.labels:
        return False
    if not (role.nodes or role.racks) or role.relax:
        return True
    return node.host in role.nodes or node.rack in role.racks


def _times(size: Size, node: Size) -> int:
    counts = [node.memory // size.memory if size.memory else 1]
    if size.vcores:
        counts.append(node.vcores // size.vcores)
    if size.gpus:
        counts.append(node.gpus // size.gpus)
    return min(counts)


def least_of(role: Role) -> int:
    """Return the minimum number of instances of a role for a start."""
    return role.instances if role.least is None else min(role.least, role.instances)


def gang_of(spec: JobSpec) -> list[Role]:
    """Return the roles that must be ready before the job starts."""
    return [role for role in spec.roles if role.kind != "sidecar"]
