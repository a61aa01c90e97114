"""Nodes and who holds what, read from the ResourceManager's REST answers; asks nobody.

Text in them is anybody's: it is cut and made printable here. Queues are ``queue_tree``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

GPU = "yarn.io/gpu"
#: Begins the tag that says which job an application is.
JOB_TAG = "submarine_job:"
_USABLE = ("RUNNING", "UNHEALTHY_BUT_RUNNING")


class Size(NamedTuple):
    """Memory in MiB, virtual cores, GPUs."""

    memory: int = 0
    vcores: int = 0
    gpus: int = 0

    def plus(self, other: Size) -> Size:
        """The sum."""
        return Size(*(a + b for a, b in zip(self, other)))

    def minus(self, other: Size) -> Size:
        """What is left, never less than nothing."""
        return Size(*(max(0, a - b) for a, b in zip(self, other)))

    def times(self, count: int) -> Size:
        """``count`` of these."""
        return Size(*(a * count for a in self))

    def lacks(self, wanted: Size) -> tuple[str, ...]:
        """The kinds of which this has less than ``wanted``, the scarcest kind first."""
        return tuple(
            kind
            for kind in ("gpus", "memory", "vcores")
            if getattr(wanted, kind) > getattr(self, kind)
        )

    def fits(self, wanted: Size) -> int:
        """How often ``wanted`` fits in."""
        return min((have // want for have, want in zip(self, wanted) if want > 0), default=1 << 20)


NOTHING = Size()


@dataclass(frozen=True)
class Node:
    """A running node: all that it has, and what nobody holds."""

    host: str
    name: str
    rack: str
    labels: tuple[str, ...]
    total: Size
    free: Size


@dataclass(frozen=True)
class Holder:
    """A running or waiting application and what it has.

    Parameters
    ----------
    who
        ``job digits-20261120-7f3a``, or ``application "name" of ada``.
    """

    id: str
    who: str
    queue: str
    user: str
    used: Size
    reserved: Size
    waits: bool
    started: int


def size(raw: Any) -> Size:
    """A resource in any of the forms that the REST interface writes."""
    if not isinstance(raw, Mapping):
        return Size()
    gpus = 0
    for info in listed((raw.get("resourceInformations") or {}).get("resourceInformation")):
        if info.get("name") == GPU:
            gpus = whole(info.get("value"))
    return Size(whole(raw.get("memory", raw.get("memorySize"))), whole(raw.get("vCores")), gpus)


def running_nodes(nodes: Any) -> list[Node]:
    """The usable nodes of ``/ws/v1/cluster/nodes``."""
    return [
        _node(raw)
        for raw in listed(((nodes or {}).get("nodes") or {}).get("node"))
        if raw.get("state") in _USABLE
    ]


def _node(raw: Mapping[str, Any]) -> Node:
    used = size(raw.get("usedResource"))
    free = size(raw.get("availableResource"))
    if "availableResource" not in raw:  # before Hadoop 3.1 there are no GPUs either
        free = Size(whole(raw.get("availMemoryMB")), whole(raw.get("availableVirtualCores")))
        used = Size(whole(raw.get("usedMemoryMB")), whole(raw.get("usedVirtualCores")))
    total = size(raw["totalResource"]) if raw.get("totalResource") else used.plus(free)
    return Node(
        host=plain(raw.get("nodeHostName")),
        name=plain(raw.get("id")),
        rack=plain(raw.get("rack")),
        labels=tuple(plain(label) for label in raw.get("nodeLabels") or () if label),
        total=total,
        free=free,
    )


def holders(apps: Any) -> list[Holder]:
    """The active applications of ``/ws/v1/cluster/apps``."""
    found = []
    for raw in listed(((apps or {}).get("apps") or {}).get("app")):
        if raw.get("state") not in ("ACCEPTED", "RUNNING", "SUBMITTED", "NEW", "NEW_SAVING"):
            continue
        by_label = listed((raw.get("resourceInfo") or {}).get("resourceUsagesByPartition"))
        used = Size(whole(raw.get("allocatedMB")), whole(raw.get("allocatedVCores")))
        reserved = Size(whole(raw.get("reservedMB")), whole(raw.get("reservedVCores")))
        if by_label:
            used = _sum(size(part.get("used")) for part in by_label)
            reserved = _sum(size(part.get("reserved")) for part in by_label)
        user = plain(raw.get("user"))
        found.append(
            Holder(
                id=str(raw.get("id")),
                who=_who(raw, user),
                queue=plain(raw.get("queue")),
                user=user,
                used=used,
                reserved=reserved,
                waits=not used.memory,
                started=whole(raw.get("startedTime")),
            )
        )
    return found


def _who(raw: Mapping[str, Any], user: str) -> str:
    job = job_of(raw)
    return f"job {job}" if job else f'application "{plain(raw.get("name"))}" of {user}'


def job_of(raw: Mapping[str, Any]) -> str:
    """Which job an application is, by its tag; empty: none of ours."""
    for tag in str(raw.get("applicationTags") or "").split(","):
        if tag.startswith(JOB_TAG) and len(tag) > len(JOB_TAG):
            return plain(tag[len(JOB_TAG) :])
    return ""


def plain(raw: Any) -> str:
    """Somebody's text, short and printable."""
    return "".join(char for char in str(raw or "") if char.isprintable())[:120]


def _sum(sizes: Iterator[Size]) -> Size:
    total = Size()
    for one in sizes:
        total = total.plus(one)
    return total


def listed(raw: Any) -> Sequence[Mapping[str, Any]]:
    """The objects of a list; some versions write a single one without its list."""
    found = [raw] if isinstance(raw, Mapping) else list(raw or [])
    return [one for one in found if isinstance(one, Mapping)]


def whole(raw: Any) -> int:
    """A number, 0 for what is none."""
    try:
        return int(float(raw or 0))
    except (TypeError, ValueError):
        return 0


def nearest(nodes: Sequence[Node], wanted: Size, *, free: bool) -> Node:
    """The node that lacks least."""

    def part(node: Node) -> tuple[int, float]:
        have = node.free if free else node.total
        ratios = [min(1.0, h / w) for h, w in zip(have, wanted) if w > 0]
        return -len(have.lacks(wanted)), sum(ratios)

    return max(nodes, key=part)


def name_among(node: Node, nodes: Sequence[Node]) -> str:
    """The host, with the port where several NodeManagers share it."""
    return node.host if sum(other.host == node.host for other in nodes) == 1 else node.name
