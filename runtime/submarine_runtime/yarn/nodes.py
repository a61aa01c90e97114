"""Nodes in the ResourceManager's answer to ``/nodes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from submarine_runtime.yarn.fields import (
    GPU_RESOURCES,
    MAX_NAME,
    Size,
    as_int,
    as_names,
    as_text,
    gpu_counts,
    objects_in,
    parse_size,
    printable,
)

#: A node in these states may start containers; one that is decommissioned keeps those it has.
_RUNNING = ("RUNNING", "UNHEALTHY_BUT_RUNNING")
_USABLE = ("RUNNING", "DECOMMISSIONING")


@dataclass(frozen=True)
class Node:
    """A node, its total resources, and those in use and free.

    Parameters
    ----------
    name
        ``host:port`` of the NodeManager.
    gpu_resources
        Names under which it offers GPUs.
    """

    host: str
    name: str
    rack: str
    state: str
    labels: tuple[str, ...]
    total: Size
    used: Size
    free: Size
    gpu_resources: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Whether the node may start containers."""
        return self.state in _RUNNING

    @property
    def usable(self) -> bool:
        """Whether the node runs, or runs until its containers have ended."""
        return self.state in _USABLE


def nodes_of(answer: Any) -> list[Node]:
    """Return all nodes of an answer to ``/nodes``; a list of them is accepted too."""
    if isinstance(answer, list):
        return [one for one in answer if isinstance(one, Node)]
    return [_node(raw) for raw in objects_in(answer, "nodes", "node")]


def _node(raw: Mapping[str, Any]) -> Node:
    used, free = parse_size(raw.get("usedResource")), parse_size(raw.get("availableResource"))
    # Before Hadoop 3.1, which has no GPUs either.
    if "usedResource" not in raw:
        used = Size(as_int(raw.get("usedMemoryMB")), as_int(raw.get("usedVirtualCores")))
    if "availableResource" not in raw:
        free = Size(as_int(raw.get("availMemoryMB")), as_int(raw.get("availableVirtualCores")))
    gpus = gpu_counts(raw.get("totalResource"))
    return Node(
        host=printable(raw.get("nodeHostName"), MAX_NAME),
        name=printable(raw.get("id"), MAX_NAME),
        rack=printable(raw.get("rack"), MAX_NAME),
        state=as_text(raw.get("state")),
        labels=as_names(raw.get("nodeLabels")),
        total=parse_size(raw["totalResource"]) if raw.get("totalResource") else used.plus(free),
        used=used,
        free=free,
        gpu_resources=tuple(name for name, count in gpus.items() if count),
    )


def largest_node(nodes: Sequence[Node]) -> tuple[Size, int]:
    """Return the maximum of each resource over the usable nodes, and the number of these nodes."""
    totals = [node.total for node in nodes if node.usable]
    largest = Size(*(max(each) for each in zip(*totals))) if totals else Size()
    return largest, len(totals)


def offered_gpu_resource(answer: Any) -> str:
    """Return the name under which usable nodes offer GPUs; empty if none does.

    Parameters
    ----------
    answer
        To ``/nodes``, or the nodes.
    """
    usable = [node for node in nodes_of(answer) if node.usable]
    offered = {name for node in usable for name in node.gpu_resources}
    return next((name for name in GPU_RESOURCES if name in offered), "")


def nearest(nodes: Sequence[Node], required: Size, *, free: bool) -> Node:
    """Return the node that lacks least."""

    def part(node: Node) -> tuple[int, float]:
        have = node.free if free else node.total
        ratios = [min(1.0, h / w) for h, w in zip(have, required) if w > 0]
        return -len(have.lacks(required)), sum(ratios)

    return max(nodes, key=part)


def node_name(node: Node, nodes: Sequence[Node]) -> str:
    """Return the host, with the port if several NodeManagers share it."""
    return node.host if sum(other.host == node.host for other in nodes) == 1 else node.name
