"""Parse the queues of the capacity and the fair scheduler from the REST interface.

Values that an older Hadoop does not report are None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from submarine_runtime.yarn.capacity import NOTHING, Size, as_objects, parse_size, printable


@dataclass(frozen=True)
class Queue:
    """A queue and its limits for one node label.

    Parameters
    ----------
    limit
        Limit of its jobs; None: not reported.
    masters, masters_used
        The same for application masters.
    user_masters
        Limit of one user's masters.
    users
        Name -> resources of the user, limit of the user, resources of the user's masters.
    labels
        Node labels that it may use; ``*``: all. None: not reported.
    above
        Its parent queues, the nearest first.
    """

    name: str
    path: str
    used: Size = NOTHING
    limit: Size | None = None
    masters: Size | None = None
    masters_used: Size = NOTHING
    user_masters: Size | None = None
    users: Mapping[str, tuple[Size, Size | None, Size]] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    above: tuple[Queue, ...] = ()


def queue_of(scheduler: Any, name: str, label: str = "") -> Queue | None:
    """Return the queue with a short name or path, a leaf before its parents; None: no queue."""
    info = ((scheduler or {}).get("scheduler") or {}).get("schedulerInfo") or {}
    if "rootQueue" in info:
        everything = list(_fair(info["rootQueue"], ()))
    else:
        everything = list(_capacity(info, "", label, ()))
    matches = [queue for queue in everything if name in (queue.name, queue.path)]
    return max(matches, key=lambda queue: len(queue.above), default=None)


def _capacity(
    raw: Mapping[str, Any], parent: str, label: str, above: tuple[Queue, ...]
) -> Iterator[Queue]:
    name = printable(raw.get("queueName"))
    path = printable(raw.get("queuePath")) or (f"{parent}.{name}" if parent else name)
    users = {
        printable(user.get("username")): (
            parse_size(user.get("resourcesUsed")),
            parse_size(user["userResourceLimit"]) if user.get("userResourceLimit") else None,
            parse_size(user.get("AMResourceUsed")),
        )
        for user in as_objects((raw.get("users") or {}).get("user"))
    }
    share = _of_label((raw.get("capacities") or {}).get("queueCapacitiesByPartition"), label)
    usage = _of_label((raw.get("resources") or {}).get("resourceUsagesByPartition"), label)
    limit = share.get("effectiveMaxResource") or (not label and raw.get("maxEffectiveCapacity"))
    masters = usage.get("amLimit") or (not label and raw.get("AMResourceLimit"))
    user_masters = usage.get("userAmLimit") or (not label and raw.get("userAMResourceLimit"))
    queue = Queue(
        name=name,
        path=path,
        used=parse_size(usage.get("used") or (not label and raw.get("resourcesUsed"))),
        limit=parse_size(limit) if limit and any(parse_size(limit)) else None,
        masters=parse_size(masters) if masters and any(parse_size(masters)) else None,
        masters_used=parse_size(usage.get("amUsed") or (not label and raw.get("usedAMResource"))),
        user_masters=parse_size(user_masters)
        if user_masters and any(parse_size(user_masters))
        else None,
        users=users if not label else {},
        labels=tuple(printable(one) for one in raw["nodeLabels"]) if "nodeLabels" in raw else None,
        above=above,
    )
    yield queue
    below = raw.get("queues")
    for child in as_objects(below.get("queue") if isinstance(below, Mapping) else below):
        yield from _capacity(child, path, label, (queue, *above))


def _of_label(raw: Any, label: str) -> Mapping[str, Any]:
    return next(
        (part for part in as_objects(raw) if (part.get("partitionName") or "") == label), {}
    )


def _fair(raw: Mapping[str, Any], above: tuple[Queue, ...]) -> Iterator[Queue]:
    path = printable(raw.get("queueName"))
    masters, limit = raw.get("amMaxResources"), raw.get("maxResources")
    queue = Queue(
        name=path.rpartition(".")[2],
        path=path,
        used=parse_size(raw.get("usedResources")),
        limit=parse_size(limit) if limit else None,
        masters=parse_size(masters) if masters and any(parse_size(masters)) else None,
        masters_used=parse_size(raw.get("amUsedResources")),
        above=above,
    )
    yield queue
    for child in as_objects((raw.get("childQueues") or {}).get("queue")):
        yield from _fair(child, (queue, *above))
