"""Queues of the capacity, the fair and the FIFO scheduler, from the answer to ``/scheduler``.

Values that an older Hadoop does not report are None, or empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Iterator, Mapping, Sequence

from submarine_runtime.yarn.fields import (
    MAX_NAME,
    NOTHING,
    Size,
    as_int,
    as_names,
    as_number,
    as_object,
    as_text,
    objects_in,
    optional_size,
    parse_size,
    printable,
)

#: Maximum number of queues, and of levels of queues.
MAX_QUEUES, MAX_LEVELS = 10_000, 50


@dataclass(frozen=True)
class Queue:
    """A queue, its limits and its use, for one node label.

    Parameters
    ----------
    fair
        Whether the fair scheduler reports it.
    leaf
        Whether it accepts jobs, as opposed to queues below it.
    above
        Its parent queues, the nearest first.
    used, limit
        Resources of its jobs, and their maximum now.
    maximum
        The largest container that it accepts.
    most
        The maximum of its resources, if the scheduler is configured with a size.
    masters, masters_used, user_masters
        Limit for all application masters together, their use, and the limit for those of one user.
    users
        Name -> resources of the user, limit of the user, resources of the user's masters.
    submitters
        Users that may submit, if the cluster checks that; None: all, members of a group, or
        unknown.
    labels
        Node labels that its jobs may request; ``*``: all.
    share, most_share, used_share
        Guaranteed, maximum and used percent of the cluster.
    steady
        Guaranteed resources, of the fair scheduler.
    partition_limits, partition_used
        Node label -> maximum and use; the key of nodes without label is empty.
    running, pending, pending_containers
        Number of activated and of waiting applications, and of requested containers.
    """

    name: str
    path: str
    state: str = "RUNNING"
    fair: bool = False
    leaf: bool = True
    above: tuple[Queue, ...] = ()
    used: Size = NOTHING
    limit: Size | None = None
    maximum: Size | None = None
    most: Size | None = None
    masters: Size | None = None
    masters_used: Size = NOTHING
    user_masters: Size | None = None
    users: Mapping[str, tuple[Size, Size | None, Size]] = field(default_factory=dict)
    submitters: frozenset[str] | None = None
    labels: tuple[str, ...] | None = None
    share: float | None = None
    most_share: float | None = None
    used_share: float | None = None
    steady: Size | None = None
    partition_limits: Mapping[str, Size] = field(default_factory=dict)
    partition_used: Mapping[str, Size] = field(default_factory=dict)
    running_applications: int = 0
    pending_applications: int = 0
    pending_containers: int = 0

    @property
    def running(self) -> bool:
        """Whether it is started; a stopped queue accepts no jobs."""
        return self.state.upper() == "RUNNING"


def queues_of(answer: Any, label: str = "") -> list[Queue]:
    """Return the queues in the scheduler's order, each before those below it.

    The root of the capacity scheduler is only among ``Queue.above``.

    Parameters
    ----------
    answer
        Answer to ``/scheduler``.
    label
        Node label whose limits and use are returned; empty: of the nodes without label.
    """
    info = _scheduler_info(answer)
    if "rootQueue" in info:
        found = _fair(as_object(info["rootQueue"]), ())
    else:
        found = _capacity(info, label, (), None)
        if objects_in(info, "queues", "queue"):
            found = islice(found, 1, None)
    return list(islice(found, MAX_QUEUES))


def find_queue(queues: Sequence[Queue], name: str) -> Queue | None:
    """Return the queue with a short name or full path; prefer a leaf to a parent queue."""
    matches = [queue for queue in queues if name in (queue.name, queue.path)]
    return next((queue for queue in matches if queue.leaf), matches[0] if matches else None)


def smallest_memory(answer: Any) -> int | None:
    """Return the scheduler's smallest container in MiB; None if unknown."""
    for raw in objects_in(_scheduler_info(answer), "queues", "queue"):
        for part in objects_in(raw, "capacities", "queueCapacitiesByPartition")[:1]:
            least = as_object(part.get("configuredMinResource"))
            for entry in objects_in(least, "resourceInformations", "resourceInformation"):
                if entry.get("name") == "memory-mb" and as_int(entry.get("minimumAllocation")) > 0:
                    return as_int(entry["minimumAllocation"])
    return None


def _scheduler_info(answer: Any) -> Mapping[str, Any]:
    return as_object(as_object(as_object(answer).get("scheduler")).get("schedulerInfo"))


def _capacity(
    raw: Mapping[str, Any], label: str, above: tuple[Queue, ...], inherited: frozenset[str] | None
) -> Iterator[Queue]:
    """Yield a queue and those below it; ``inherited`` are the submitters of its parent."""
    below = objects_in(raw, "queues", "queue")
    root = not above
    name = printable(raw.get("queueName")) or ("root" if root and below else "default")
    path = printable(raw.get("queuePath"), MAX_NAME)
    path = path or ("root" if root else f"{above[0].path}.{name}"[:MAX_NAME])
    shares = objects_in(raw, "capacities", "queueCapacitiesByPartition")
    usages = objects_in(raw, "resources", "resourceUsagesByPartition")
    share, usage = _of_label(shares, label), _of_label(usages, label)
    whole = {} if label else raw  # What is reported of the queue is that of nodes without label.
    limit = optional_size(share.get("effectiveMaxResource") or whole.get("maxEffectiveCapacity"))
    labels = raw.get("nodeLabels")
    own = _submitters(raw)
    submitters = own if root else None if own is None or inherited is None else own | inherited
    queue = Queue(
        name=name,
        path=path,
        state=as_text(raw.get("state")) or "RUNNING",
        leaf=not below,
        above=above,
        used=parse_size(usage.get("used") or whole.get("resourcesUsed")),
        limit=limit if limit is not None and any(limit) else None,
        maximum=optional_size(raw.get("maximumAllocation")),
        # The queue's own first: by those of the partition a real 3.5.0 admits no master with GPUs.
        masters=optional_size(whole.get("AMResourceLimit") or usage.get("amLimit")),
        masters_used=parse_size(usage.get("amUsed") or whole.get("usedAMResource")),
        user_masters=optional_size(whole.get("userAMResourceLimit") or usage.get("userAmLimit")),
        users=_users(whole),
        submitters=submitters,
        labels=as_names(labels) if labels is not None else None,
        share=_percent(raw.get("absoluteCapacity")),
        most_share=_percent(raw.get("absoluteMaxCapacity")),
        used_share=_percent(raw.get("absoluteUsedCapacity")),
        partition_limits={
            printable(part.get("partitionName")): parse_size(part["effectiveMaxResource"])
            for part in shares
            if "effectiveMaxResource" in part
        },
        partition_used={
            printable(part.get("partitionName")): parse_size(part.get("used")) for part in usages
        },
        running_applications=as_int(raw.get("numActiveApplications")),
        pending_applications=as_int(raw.get("numPendingApplications")),
        pending_containers=as_int(raw.get("pendingContainers")),
    )
    yield queue
    if len(above) < MAX_LEVELS:
        for child in below:
            yield from _capacity(child, label, (queue, *above), submitters)


def _of_label(parts: Sequence[Mapping[str, Any]], label: str) -> Mapping[str, Any]:
    return next((part for part in parts if (part.get("partitionName") or "") == label), {})


def _users(raw: Mapping[str, Any]) -> dict[str, tuple[Size, Size | None, Size]]:
    return {
        printable(user.get("username")): (
            parse_size(user.get("resourcesUsed")),
            optional_size(user.get("userResourceLimit")),
            parse_size(user.get("AMResourceUsed")),
        )
        for user in objects_in(raw, "users", "user")
    }


def _submitters(raw: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the users in a queue's own access lists; None: all, a group, or no lists.

    Access to submit to or administer a queue applies to the queues below it.
    """
    lists = {
        as_text(entry.get("accessType")): as_text(entry.get("accessControlList"))
        for entry in objects_in(raw, "queueAcls", "queueAcl")
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


def _percent(raw: Any) -> float | None:
    number = None if isinstance(raw, str) else as_number(raw)
    return float(number) if number is not None and abs(number) < 1e15 else None


def _fair(raw: Mapping[str, Any], above: tuple[Queue, ...]) -> Iterator[Queue]:
    path = printable(raw.get("queueName"), MAX_NAME)
    below = objects_in(raw, "childQueues", "queue")
    most = optional_size(raw.get("maxResources"))
    queue = Queue(
        # Queues of the same last name may exist, and the scheduler accepts no last name alone.
        name=path[5:] if path.startswith("root.") else path,
        path=path,
        fair=True,
        leaf=not below,
        above=above,
        used=parse_size(raw.get("usedResources")),
        limit=most,
        most=most,
        maximum=optional_size(raw.get("maxContainerAllocation")),
        masters=optional_size(raw.get("amMaxResources")),
        masters_used=parse_size(raw.get("amUsedResources")),
        steady=optional_size(raw.get("steadyFairResources")),
        running_applications=as_int(raw.get("numActiveApps")),
        pending_applications=as_int(raw.get("numPendingApps")),
        pending_containers=as_int(raw.get("pendingContainers")),
    )
    yield queue
    if len(above) < MAX_LEVELS:
        for child in below:
            yield from _fair(child, (queue, *above))
