"""Convert the ResourceManager's responses to an overview: queues, nodes, applications with GPUs.

Supports the capacity scheduler and the fair scheduler, as ``scheduler`` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from submarine_jobs.backends.overview import GpuHolder, NodeUse, Overview, QueueUse
from submarine_jobs.backends.yarn.cluster.scheduler import Size, children, node_total, size
from submarine_runtime.yarn import job_id_of

_MAX_ENTRIES = 10_000
Json = Mapping[str, Any]


def overview_of(scheduler: Any, nodes: Any, apps: Any = None) -> Overview:
    """Return the overview from the responses of ``/scheduler``, ``/nodes`` and ``/apps``."""
    found = [_node(raw) for raw in children((nodes or {}).get("nodes"), "node")[:_MAX_ENTRIES]]
    usable = [node for node in found if node.state in ("RUNNING", "DECOMMISSIONING")]
    memory = sum(node.memory_total for node in usable)
    gpus = sum(node.gpus_total for node in usable)
    free: Counter[str] = Counter()
    for node in found:
        if node.state == "RUNNING":
            free[node.labels[0] if node.labels else ""] += max(0, node.gpus_total - node.gpus_used)
    waiting = _waiting(apps)
    info = ((scheduler or {}).get("scheduler") or {}).get("schedulerInfo") or {}
    if "rootQueue" in info:
        cluster = Size(memory, 0, gpus)
        queues = list(_fair(info["rootQueue"], cluster, sum(free.values()), waiting))
    else:
        top = children(info.get("queues"), "queue")
        queues = [queue for raw in top for queue in _capacity(raw, gpus, free, waiting)]
    return Overview(tuple(queues[:_MAX_ENTRIES]), tuple(found), tuple(_holders(apps)))


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


def _holders(apps: Any) -> Iterator[GpuHolder]:
    for raw in children((apps or {}).get("apps"), "app"):
        parts = children((raw.get("resourceInfo") or {}).get("resourceUsagesByPartition"), "")
        gpus = {str(part.get("partitionName") or ""): size(part.get("used")).gpus for part in parts}
        if any(gpus.values()):
            yield GpuHolder(
                application_id=str(raw.get("id") or ""),
                name=str(raw.get("name") or ""),
                user=str(raw.get("user") or ""),
                queue=str(raw.get("queue") or "").removeprefix("root."),
                job_id=job_id_of(raw),
                gpus={label: count for label, count in gpus.items() if count},
            )


def _waiting(apps: Any) -> Counter[str]:
    """Count the waiting applications of each queue; older Hadoop has queue names, not paths."""
    found: Counter[str] = Counter()
    for raw in children((apps or {}).get("apps"), "app"):
        parts = children((raw.get("resourceInfo") or {}).get("resourceUsagesByPartition"), "")
        if any(size(part.get("pending")) != Size() for part in parts):
            found[str(raw.get("queue") or "")] += 1
    return found


def _capacity(
    raw: Json, gpus: int, free: Mapping[str, int], waiting: Mapping[str, int]
) -> Iterator[QueueUse]:
    free = _free_gpus(raw, free)
    below = children(raw.get("queues"), "queue")
    for child in below:
        yield from _capacity(child, gpus, free, waiting)
    if below:
        return
    yield QueueUse(
        name=str(raw.get("queueName")),
        state=str(raw.get("state", "RUNNING")),
        capacity=_percent(raw.get("absoluteCapacity")),
        used=_percent(raw.get("absoluteUsedCapacity")),
        gpus_total=_max_gpus(raw, gpus),
        gpus_used=_used_gpus(raw),
        gpus_free=sum(free.values()),
        pending=_pending(raw, "numPendingApplications", waiting),
        running=_whole(raw.get("numActiveApplications")),
    )


def _free_gpus(raw: Json, free: Mapping[str, int]) -> dict[str, int]:
    """Return label -> GPUs that are free for a queue, of those free for its parent queue."""
    shares = children((raw.get("capacities") or {}).get("queueCapacitiesByPartition"), "")
    maximum = {
        str(share.get("partitionName") or ""): size(share["effectiveMaxResource"]).gpus
        for share in shares
        if "effectiveMaxResource" in share
    }
    usages = children((raw.get("resources") or {}).get("resourceUsagesByPartition"), "")
    used = {str(part.get("partitionName") or ""): size(part.get("used")).gpus for part in usages}
    if not maximum:
        return dict(free)
    return {
        label: max(0, min(free.get(label, 0), limit - used.get(label, 0)))
        for label, limit in maximum.items()
    }


def _used_gpus(raw: Json) -> int:
    """Return the GPUs in use on nodes of all labels; ``resourcesUsed`` omits labelled nodes."""
    usages = children((raw.get("resources") or {}).get("resourceUsagesByPartition"), "")
    if usages:
        return sum(size(part.get("used")).gpus for part in usages)
    return size(raw.get("resourcesUsed")).gpus


def _pending(raw: Json, counted: str, waiting: Mapping[str, int]) -> int:
    """Count the waiting applications; the scheduler counts only those without a master."""
    names = (str(raw.get("queuePath")), str(raw.get("queueName")))
    known = next((waiting[name] for name in names if name in waiting), 0)
    # The ResourceManager may list only applications that this user may see.
    some = 1 if _whole(raw.get("pendingContainers")) else 0
    return max(_whole(raw.get(counted)), known, some)


def _max_gpus(raw: Json, gpus: int) -> int | None:
    """Return the maximum of GPUs: the sum of the partitions' sizes if known, else the share."""
    partitions = children((raw.get("capacities") or {}).get("queueCapacitiesByPartition"), "")
    sizes = [part["effectiveMaxResource"] for part in partitions if "effectiveMaxResource" in part]
    if sizes:
        return min(gpus, sum(size(item).gpus for item in sizes))
    share = _percent(raw.get("absoluteMaxCapacity"))
    return None if share is None else int(gpus * share / 100)


def _fair(raw: Json, cluster: Size, free: int, waiting: Mapping[str, int]) -> Iterator[QueueUse]:
    used, maximum, share = (
        size(raw.get(key)) if raw.get(key) else None
        for key in ("usedResources", "maxResources", "steadyFairResources")
    )
    if maximum is not None:
        free = max(0, min(free, maximum.gpus - (used.gpus if used is not None else 0)))
    below = children(raw.get("childQueues"), "queue")
    for child in below:
        yield from _fair(child, cluster, free, waiting)
    if below:
        return
    yield QueueUse(
        name=str(raw.get("queueName")).removeprefix("root."),
        capacity=_part(share, cluster),
        used=_part(used, cluster),
        gpus_total=min(cluster.gpus, maximum.gpus) if maximum is not None else cluster.gpus,
        gpus_used=used.gpus if used is not None else None,
        gpus_free=free,
        pending=_pending(raw, "numPendingApps", waiting),
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
