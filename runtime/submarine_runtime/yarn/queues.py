"""Queues as the capacity and the fair scheduler describe them over REST; asks nobody.

What an older Hadoop does not say is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from submarine_runtime.yarn.capacity import NOTHING, Size, listed, plain, size


@dataclass(frozen=True)
class Queue:
    """A queue and what holds for one node label in it.

    Parameters
    ----------
    limit
        The most that its jobs may hold; None: not said.
    masters, masters_used
        The same for application masters.
    user_masters
        What one user's masters may hold.
    users
        Name -> what that user holds, may hold, and holds with masters.
    labels
        Node labels that it may use; ``*``: any. None: not said.
    above
        The queues that it is part of, the nearest first.
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
    """The queue of that short name or path, a leaf before its parents; None: there is none."""
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
    name = plain(raw.get("queueName"))
    path = plain(raw.get("queuePath")) or (f"{parent}.{name}" if parent else name)
    users = {
        plain(user.get("username")): (
            size(user.get("resourcesUsed")),
            size(user["userResourceLimit"]) if user.get("userResourceLimit") else None,
            size(user.get("AMResourceUsed")),
        )
        for user in listed((raw.get("users") or {}).get("user"))
    }
    share = _of_label((raw.get("capacities") or {}).get("queueCapacitiesByPartition"), label)
    usage = _of_label((raw.get("resources") or {}).get("resourceUsagesByPartition"), label)
    limit = share.get("effectiveMaxResource") or (not label and raw.get("maxEffectiveCapacity"))
    masters = usage.get("amLimit") or (not label and raw.get("AMResourceLimit"))
    user_masters = usage.get("userAmLimit") or (not label and raw.get("userAMResourceLimit"))
    queue = Queue(
        name=name,
        path=path,
        used=size(usage.get("used") or (not label and raw.get("resourcesUsed"))),
        limit=size(limit) if limit and any(size(limit)) else None,
        masters=size(masters) if masters and any(size(masters)) else None,
        masters_used=size(usage.get("amUsed") or (not label and raw.get("usedAMResource"))),
        user_masters=size(user_masters) if user_masters and any(size(user_masters)) else None,
        users=users if not label else {},
        labels=tuple(plain(one) for one in raw["nodeLabels"]) if "nodeLabels" in raw else None,
        above=above,
    )
    yield queue
    below = raw.get("queues")
    for child in listed(below.get("queue") if isinstance(below, Mapping) else below):
        yield from _capacity(child, path, label, (queue, *above))


def _of_label(raw: Any, label: str) -> Mapping[str, Any]:
    return next((part for part in listed(raw) if (part.get("partitionName") or "") == label), {})


def _fair(raw: Mapping[str, Any], above: tuple[Queue, ...]) -> Iterator[Queue]:
    path = plain(raw.get("queueName"))
    masters, limit = raw.get("amMaxResources"), raw.get("maxResources")
    queue = Queue(
        name=path.rpartition(".")[2],
        path=path,
        used=size(raw.get("usedResources")),
        limit=size(limit) if limit else None,
        masters=size(masters) if masters and any(size(masters)) else None,
        masters_used=size(raw.get("amUsedResources")),
        above=above,
    )
    yield queue
    for child in listed((raw.get("childQueues") or {}).get("queue")):
        yield from _fair(child, (queue, *above))
