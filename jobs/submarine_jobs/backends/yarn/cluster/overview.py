"""Convert the ResourceManager's answers to an overview: queues, nodes, applications with GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from submarine_jobs.backends.overview import GpuHolder, NodeUse, Overview, QueueUse
from submarine_runtime.yarn import (
    Application,
    Node,
    Queue,
    Size,
    applications_of,
    nodes_of,
    queues_of,
    total_size,
)

_MAX_ENTRIES = 10_000


def overview_of(scheduler: Any, nodes: Any, apps: Any = None) -> Overview:
    """Return the overview from the responses of ``/scheduler``, ``/nodes`` and ``/apps``.

    The latter two may be parsed already.
    """
    found, applications = nodes_of(nodes)[:_MAX_ENTRIES], applications_of(apps)
    cluster = total_size(node.total for node in found if node.usable)
    free: Counter[str] = Counter()
    for node in found:
        if node.running:
            free[node.labels[0] if node.labels else ""] += node.total.minus(node.used).gpus
    # Older Hadoop has names of queues in applications, not paths.
    waiting = Counter(app.queue for app in applications if app.waits_for_resources)
    queues = (
        _fair_queue(queue, cluster, sum(free.values()), waiting)
        if queue.fair
        else _capacity_queue(queue, cluster.gpus, free, waiting)
        for queue in queues_of(scheduler)
        if queue.leaf and (queue.above or queue.fair)
    )
    return Overview(
        tuple(queues), tuple(_node(node) for node in found), tuple(_holders(applications))
    )


def _node(node: Node) -> NodeUse:
    return NodeUse(
        host=node.host,
        state=node.state,
        labels=node.labels,
        memory_total=node.total.memory,
        memory_used=node.used.memory,
        vcores_total=node.total.vcores,
        vcores_used=node.used.vcores,
        gpus_total=node.total.gpus,
        gpus_used=node.used.gpus,
    )


def _holders(applications: Sequence[Application]) -> Iterator[GpuHolder]:
    for app in applications:
        gpus = {label: count for label, count in app.used_gpus.items() if count}
        if gpus:
            yield GpuHolder(
                application_id=app.id,
                name=app.name,
                user=app.user,
                queue=app.queue.removeprefix("root."),
                job_id=app.job_id,
                gpus=gpus,
            )


def _capacity_queue(
    queue: Queue, gpus: int, free: Mapping[str, int], waiting: Mapping[str, int]
) -> QueueUse:
    for level in (*reversed(queue.above[:-1]), queue):  # The root has the whole cluster.
        free = _free_gpus(level, free)
    limits, used = queue.partition_limits.values(), queue.partition_used.values()
    most = None if queue.most_share is None else int(gpus * queue.most_share / 100)
    return QueueUse(
        name=queue.name,
        state=queue.state,
        capacity=queue.share,
        used=queue.used_share,
        # The sum of the partitions' sizes if known, else the share.
        gpus_total=min(gpus, total_size(limits).gpus) if limits else most,
        # What is reported of the queue as a whole omits labelled nodes.
        gpus_used=total_size(used).gpus if used else queue.used.gpus,
        gpus_free=sum(free.values()),
        pending=_pending(queue, waiting),
        running=queue.running_applications,
    )


def _free_gpus(queue: Queue, free: Mapping[str, int]) -> Mapping[str, int]:
    """Return label -> GPUs that are free for a queue, of those free for its parent queue."""
    used = queue.partition_used
    limits = queue.partition_limits
    return {
        label: max(0, min(free.get(label, 0), limit.gpus - used.get(label, Size()).gpus))
        for label, limit in limits.items()
    } or free


def _pending(queue: Queue, waiting: Mapping[str, int]) -> int:
    """Count the waiting applications; the scheduler counts only those without a master."""
    known = next((waiting[name] for name in (queue.path, queue.name) if name in waiting), 0)
    # The ResourceManager may list only applications that this user may see.
    return max(queue.pending_applications, known, 1 if queue.pending_containers else 0)


def _fair_queue(queue: Queue, cluster: Size, free: int, waiting: Mapping[str, int]) -> QueueUse:
    for level in (*reversed(queue.above), queue):
        if level.most is not None:
            free = max(0, min(free, level.most.gpus - level.used.gpus))
    return QueueUse(
        name=queue.path.removeprefix("root."),
        capacity=_part(queue.steady, cluster),
        used=_part(queue.used, cluster),
        gpus_total=cluster.gpus if queue.most is None else min(cluster.gpus, queue.most.gpus),
        gpus_used=queue.used.gpus,
        gpus_free=free,
        pending=_pending(queue, waiting),
        running=queue.running_applications,
    )


def _part(held: Size | None, cluster: Size) -> float | None:
    if held is None or not cluster.memory:
        return None
    return round(100 * held.memory / cluster.memory, 1)
