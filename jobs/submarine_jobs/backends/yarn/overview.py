"""Queues, nodes and who holds GPUs, from the ResourceManager's answers; asks nobody.

Understands the capacity and the fair scheduler, as ``queues`` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from submarine_jobs.backends.overview import Holder, NodeUse, Overview, QueueUse
from submarine_jobs.backends.yarn.queues import Size, children, node_total, size
from submarine_runtime.coordinator.capacity import job_of

_MAX = 10_000
Json = Mapping[str, Any]


def overview_of(scheduler: Any, nodes: Any, apps: Any = None) -> Overview:
    """What ``/scheduler``, ``/nodes`` and, where it was asked, ``/apps`` say."""
    found = [_node(raw) for raw in children((nodes or {}).get("nodes"), "node")[:_MAX]]
    usable = [node for node in found if node.state in ("RUNNING", "DECOMMISSIONING")]
    memory = sum(node.memory_total for node in usable)
    gpus = sum(node.gpus_total for node in usable)
    info = ((scheduler or {}).get("scheduler") or {}).get("schedulerInfo") or {}
    if "rootQueue" in info:
        queues = list(_fair(info["rootQueue"], Size(memory, 0, gpus)))
    else:
        top = children(info.get("queues"), "queue")
        queues = [queue for raw in top for queue in _capacity(raw, gpus)]
    return Overview(tuple(queues[:_MAX]), tuple(found), tuple(_holders(apps)))


def _node(raw: Json) -> NodeUse:
    total, used = node_total(raw), size(raw.get("usedResource"))
    return NodeUse(
        host=str(raw.get("nodeHostName") or ""),
        state=str(raw.get("state") or ""),
        labels=tuple(str(label) for label in raw.get("nodeLabels") or () if label),
        memory_total=total.memory,
        memory_used=_whole(raw.get("usedMemoryMB")),
        vcores_total=total.vcores,
        vcores_used=_whole(raw.get("usedVirtualCores")),
        gpus_total=total.gpus,
        gpus_used=used.gpus,
    )


def _holders(apps: Any) -> Iterator[Holder]:
    for raw in children((apps or {}).get("apps"), "app"):
        parts = children((raw.get("resourceInfo") or {}).get("resourceUsagesByPartition"), "")
        gpus = {str(part.get("partitionName") or ""): size(part.get("used")).gpus for part in parts}
        if any(gpus.values()):
            yield Holder(
                application_id=str(raw.get("id") or ""),
                name=str(raw.get("name") or ""),
                user=str(raw.get("user") or ""),
                queue=str(raw.get("queue") or "").removeprefix("root."),
                job_id=job_of(raw),
                gpus={label: count for label, count in gpus.items() if count},
            )


def _capacity(raw: Json, gpus: int) -> Iterator[QueueUse]:
    below = children(raw.get("queues"), "queue")
    for child in below:
        yield from _capacity(child, gpus)
    if below:
        return
    yield QueueUse(
        name=str(raw.get("queueName")),
        state=str(raw.get("state", "RUNNING")),
        capacity=_percent(raw.get("absoluteCapacity")),
        used=_percent(raw.get("absoluteUsedCapacity")),
        gpus_total=_most_gpus(raw, gpus),
        gpus_used=size(raw.get("resourcesUsed")).gpus,
        pending=_whole(raw.get("numPendingApplications")),
        running=_whole(raw.get("numActiveApplications")),
    )


def _most_gpus(raw: Json, gpus: int) -> int | None:
    """As sizes of all its partitions where the scheduler says them, else its share."""
    partitions = children((raw.get("capacities") or {}).get("queueCapacitiesByPartition"), "")
    sizes = [part["effectiveMaxResource"] for part in partitions if "effectiveMaxResource" in part]
    if sizes:
        return min(gpus, sum(size(item).gpus for item in sizes))
    share = _percent(raw.get("absoluteMaxCapacity"))
    return None if share is None else int(gpus * share / 100)


def _fair(raw: Json, cluster: Size) -> Iterator[QueueUse]:
    below = children(raw.get("childQueues"), "queue")
    for child in below:
        yield from _fair(child, cluster)
    if below:
        return
    used, most, share = (
        size(raw.get(key)) if raw.get(key) else None
        for key in ("usedResources", "maxResources", "steadyFairResources")
    )
    yield QueueUse(
        name=str(raw.get("queueName")).removeprefix("root."),
        capacity=_part(share, cluster),
        used=_part(used, cluster),
        gpus_total=min(cluster.gpus, most.gpus) if most is not None else cluster.gpus,
        gpus_used=used.gpus if used is not None else None,
        pending=_whole(raw.get("numPendingApps")),
        running=_whole(raw.get("numActiveApps")),
    )


def _part(held: Size | None, cluster: Size) -> float | None:
    if held is None or not cluster.memory:
        return None
    return round(100 * held.memory / cluster.memory, 1)


def _percent(raw: Any) -> float | None:
    return float(raw) if isinstance(raw, (int, float)) and not isinstance(raw, bool) else None


def _whole(raw: Any) -> int:
    return int(raw) if isinstance(raw, (int, float)) and abs(raw) < 1e15 else 0
