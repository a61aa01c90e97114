"""Queues and nodes from the JSON of the ResourceManager, for planning and completion.

Supports the capacity scheduler and the fair scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

GPU = "yarn.io/gpu"


@dataclass(frozen=True)
class Size:
    """Memory in MiB, virtual cores, GPUs."""

    memory: int = 0
    vcores: int = 0
    gpus: int = 0

    def holds(self, other: Size) -> bool:
        """Return whether ``other`` fits into this size."""
        return (
            other.memory <= self.memory and other.vcores <= self.vcores and other.gpus <= self.gpus
        )


@dataclass(frozen=True)
class Queue:
    """One queue.

    Parameters
    ----------
    masters
        Limit for all application masters of the queue together; None: unknown.
    masters_user
        Limit for the masters of one user.
    masters_used
        Resources that the masters use now.
    maximum
        The largest container that the queue accepts; None: unknown.
    share
        Maximum share of the cluster, from 0 to 1; None: unknown.
    most
        Maximum resources, if the scheduler reports them as a size.
    labels
        Node labels that its jobs may request; ``*``: any. None: unknown.
    users
        Users that may submit, if the cluster checks that; None: all, members of a group, or
        unknown.
    """

    name: str
    path: str
    leaf: bool
    running: bool
    masters: Size | None = None
    masters_user: Size | None = None
    masters_used: Size = Size()
    maximum: Size | None = None
    share: float | None = None
    most: Size | None = None
    labels: tuple[str, ...] | None = None
    users: frozenset[str] | None = None


def size(raw: Any) -> Size:
    """Return a resource from any of the forms of the REST interface."""
    if not isinstance(raw, Mapping):
        return Size()
    gpus = 0
    for info in (raw.get("resourceInformations") or {}).get("resourceInformation") or []:
        if info.get("name") == GPU:
            gpus = int(info.get("value") or 0)
    memory = raw.get("memory", raw.get("memorySize", 0))
    return Size(int(memory or 0), int(raw.get("vCores") or 0), gpus)


def queues(scheduler: Any) -> list[Queue]:
    """Return all queues of ``/ws/v1/cluster/scheduler``, in the scheduler's order."""
    info = ((scheduler or {}).get("scheduler") or {}).get("schedulerInfo") or {}
    if "rootQueue" in info:
        return list(_fair(info["rootQueue"]))
    found: list[Queue] = []
    for raw in children(info.get("queues"), "queue"):
        found.extend(_capacity(raw, "root", _users(info)))
    return found or [Queue(str(info.get("queueName") or "default"), "root", True, True)]


def find(all_queues: list[Queue], name: str) -> Queue | None:
    """Return the queue with a short name or full path; prefer a leaf to a parent queue."""
    matches = [q for q in all_queues if name in (q.name, q.path)]
    return next((q for q in matches if q.leaf), matches[0] if matches else None)


def smallest_memory(scheduler: Any) -> int | None:
    """Return the scheduler's smallest container in MiB; None if unknown."""
    info = ((scheduler or {}).get("scheduler") or {}).get("schedulerInfo") or {}
    for raw in children(info.get("queues"), "queue"):
        partitions = (raw.get("capacities") or {}).get("queueCapacitiesByPartition") or [{}]
        least = partitions[0].get("configuredMinResource") or {}
        for entry in (least.get("resourceInformations") or {}).get("resourceInformation") or []:
            if entry.get("name") == "memory-mb" and int(entry.get("minimumAllocation") or 0) > 0:
                return int(entry["minimumAllocation"])
    return None


def largest_node(nodes: Any) -> tuple[Size, int]:
    """Return the maximum of each resource over the usable nodes, and the number of these nodes."""
    usable = [
        node
        for node in ((nodes or {}).get("nodes") or {}).get("node") or []
        if node.get("state") in ("RUNNING", "DECOMMISSIONING")
    ]
    totals = [node_total(node) for node in usable]
    return (
        Size(
            max((t.memory for t in totals), default=0),
            max((t.vcores for t in totals), default=0),
            max((t.gpus for t in totals), default=0),
        ),
        len(usable),
    )


def some_node_holds(nodes: Any, needed: Size) -> bool:
    """Return whether a running node has the total resources ``needed``."""
    return any(
        node_total(node).holds(needed)
        for node in ((nodes or {}).get("nodes") or {}).get("node") or []
        if node.get("state") == "RUNNING"
    )


@dataclass(frozen=True)
class Node:
    """A usable node; ``total`` includes resources in use."""

    host: str
    rack: str
    labels: tuple[str, ...]
    total: Size


def usable_nodes(nodes: Any) -> list[Node]:
    """Return the running nodes of ``/ws/v1/cluster/nodes``."""
    return [
        Node(
            str(raw.get("nodeHostName") or ""),
            str(raw.get("rack") or ""),
            tuple(str(label) for label in raw.get("nodeLabels") or () if label),
            node_total(raw),
        )
        for raw in children((nodes or {}).get("nodes"), "node")
        if raw.get("state") == "RUNNING"
    ]


def node_total(node: Mapping[str, Any]) -> Size:
    """Return the total resources of a node of ``/nodes``, including those in use."""
    if node.get("totalResource"):
        return size(node["totalResource"])
    used, free = size(node.get("usedResource")), size(node.get("availableResource"))
    memory = int(node.get("usedMemoryMB") or 0) + int(node.get("availMemoryMB") or 0)
    vcores = int(node.get("usedVirtualCores") or 0)
    vcores += int(node.get("availableVirtualCores") or 0)
    return Size(memory, vcores, used.gpus + free.gpus)


def children(raw: Any, key: str) -> list[Mapping[str, Any]]:
    """Return the list of objects of ``key``; the value may be a single object."""
    found = (raw or {}).get(key) if isinstance(raw, Mapping) else raw
    if isinstance(found, Mapping):
        return [found]
    return list(found or [])


def _users(raw: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the users in a queue's own access lists; None: all, a group, or no lists.

    Access to submit to or administer a queue applies to the queues below it.
    """
    lists = {
        str(entry.get("accessType")): str(entry.get("accessControlList") or "")
        for entry in children(raw.get("queueAcls"), "queueAcl")
    }
    users: set[str] = set()
    for kind in ("SUBMIT_APP", "ADMINISTER_QUEUE"):
        if kind not in lists:
            return None
        named, _, groups = lists[kind].partition(" ")
        if "*" in lists[kind] or groups.strip():
            return None
        users.update(user for user in named.split(",") if user)
    return frozenset(users)


def _capacity(raw: Mapping[str, Any], parent: str, above: frozenset[str] | None) -> Iterator[Queue]:
    name = str(raw.get("queueName"))
    path = str(raw.get("queuePath") or f"{parent}.{name}")
    below = children(raw.get("queues"), "queue")
    limit = raw.get("AMResourceLimit")
    user_limit = raw.get("userAMResourceLimit")
    maximum = raw.get("maximumAllocation")
    own = _users(raw)
    users = None if own is None or above is None else own | above
    yield Queue(
        name=name,
        path=path,
        leaf=not below,
        running=str(raw.get("state", "RUNNING")).upper() == "RUNNING",
        masters=size(limit) if limit else None,
        masters_user=size(user_limit) if user_limit else None,
        masters_used=size(raw.get("usedAMResource")),
        maximum=size(maximum) if maximum else None,
        share=float(raw["absoluteMaxCapacity"]) / 100 if "absoluteMaxCapacity" in raw else None,
        labels=tuple(str(label) for label in raw["nodeLabels"]) if "nodeLabels" in raw else None,
        users=users,
    )
    for child in below:
        yield from _capacity(child, path, users)


def _fair(raw: Mapping[str, Any]) -> Iterator[Queue]:
    path = str(raw.get("queueName"))
    below = children(raw.get("childQueues"), "queue")
    limit, maximum = raw.get("amMaxResources"), raw.get("maxContainerAllocation")
    yield Queue(
        name=path.rpartition(".")[2],
        path=path,
        leaf=not below,
        running=True,
        masters=size(limit) if limit else None,
        masters_used=size(raw.get("amUsedResources")),
        maximum=size(maximum) if maximum else None,
        most=size(raw["maxResources"]) if raw.get("maxResources") else None,
    )
    for child in below:
        yield from _fair(child)
