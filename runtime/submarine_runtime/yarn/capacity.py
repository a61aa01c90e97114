"""Parse nodes, applications and sizes from answers of the ResourceManager's REST interface.

Text in the answers is not trusted: it is cut and made printable. Queues are parsed by ``queues``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from submarine_runtime.translation import _

GPU = "yarn.io/gpu"
#: Prefix of the application tag that names the job.
JOB_TAG = "submarine_job:"
_USABLE = ("RUNNING", "UNHEALTHY_BUT_RUNNING")


class Size(NamedTuple):
    """Memory in MiB, virtual cores, GPUs."""

    memory: int = 0
    vcores: int = 0
    gpus: int = 0

    def plus(self, other: Size) -> Size:
        """Return the sum."""
        return Size(*(a + b for a, b in zip(self, other)))

    def minus(self, other: Size) -> Size:
        """Return the difference, at least 0."""
        return Size(*(max(0, a - b) for a, b in zip(self, other)))

    def times(self, count: int) -> Size:
        """Return ``count`` times this size."""
        return Size(*(a * count for a in self))

    def lacks(self, required: Size) -> tuple[str, ...]:
        """Return the resources of which this has less than ``required``, the scarcest first."""
        return tuple(
            kind
            for kind in ("gpus", "memory", "vcores")
            if getattr(required, kind) > getattr(self, kind)
        )

    def fits(self, required: Size) -> int:
        """Return how many times ``required`` fits."""
        return min(
            (have // want for have, want in zip(self, required) if want > 0), default=1 << 20
        )


NOTHING = Size()


@dataclass(frozen=True)
class Node:
    """A running node, its total and its free resources."""

    host: str
    name: str
    rack: str
    labels: tuple[str, ...]
    total: Size
    free: Size


@dataclass(frozen=True)
class Application:
    """A running or waiting application and its resources.

    Parameters
    ----------
    label
        ``job digits-20261120-7f3a``, or ``application "name" of ada``.
    """

    id: str
    label: str
    queue: str
    user: str
    used: Size
    reserved: Size
    waits: bool
    started: int


def parse_size(raw: Any) -> Size:
    """Parse a resource in any form of the REST interface."""
    if not isinstance(raw, Mapping):
        return Size()
    gpus = 0
    for info in as_objects((raw.get("resourceInformations") or {}).get("resourceInformation")):
        if info.get("name") == GPU:
            gpus = as_int(info.get("value"))
    return Size(as_int(raw.get("memory", raw.get("memorySize"))), as_int(raw.get("vCores")), gpus)


def running_nodes(nodes: Any) -> list[Node]:
    """Return the usable nodes of ``/ws/v1/cluster/nodes``."""
    return [
        _node(raw)
        for raw in as_objects(((nodes or {}).get("nodes") or {}).get("node"))
        if raw.get("state") in _USABLE
    ]


def _node(raw: Mapping[str, Any]) -> Node:
    used = parse_size(raw.get("usedResource"))
    free = parse_size(raw.get("availableResource"))
    if "availableResource" not in raw:  # Before Hadoop 3.1, which has no GPUs either.
        free = Size(as_int(raw.get("availMemoryMB")), as_int(raw.get("availableVirtualCores")))
        used = Size(as_int(raw.get("usedMemoryMB")), as_int(raw.get("usedVirtualCores")))
    total = parse_size(raw["totalResource"]) if raw.get("totalResource") else used.plus(free)
    return Node(
        host=printable(raw.get("nodeHostName")),
        name=printable(raw.get("id")),
        rack=printable(raw.get("rack")),
        labels=tuple(printable(label) for label in raw.get("nodeLabels") or () if label),
        total=total,
        free=free,
    )


def applications(apps: Any) -> list[Application]:
    """Return the active applications of ``/ws/v1/cluster/apps``."""
    found = []
    for raw in as_objects(((apps or {}).get("apps") or {}).get("app")):
        if raw.get("state") not in ("ACCEPTED", "RUNNING", "SUBMITTED", "NEW", "NEW_SAVING"):
            continue
        by_label = as_objects((raw.get("resourceInfo") or {}).get("resourceUsagesByPartition"))
        used = Size(as_int(raw.get("allocatedMB")), as_int(raw.get("allocatedVCores")))
        reserved = Size(as_int(raw.get("reservedMB")), as_int(raw.get("reservedVCores")))
        if by_label:
            used = _sum(parse_size(part.get("used")) for part in by_label)
            reserved = _sum(parse_size(part.get("reserved")) for part in by_label)
        user = printable(raw.get("user"))
        found.append(
            Application(
                id=str(raw.get("id")),
                label=_label_of(raw, user),
                queue=printable(raw.get("queue")),
                user=user,
                used=used,
                reserved=reserved,
                waits=not used.memory,
                started=as_int(raw.get("startedTime")),
            )
        )
    return found


def _label_of(raw: Mapping[str, Any], user: str) -> str:
    job = job_id_of(raw)
    return (
        _("job {job}").format(job=job)
        if job
        else _('application "{name}" of {user}').format(name=printable(raw.get("name")), user=user)
    )


def job_id_of(raw: Mapping[str, Any]) -> str:
    """Return the job id in the tags of an application; empty: not one of our jobs."""
    for tag in str(raw.get("applicationTags") or "").split(","):
        if tag.startswith(JOB_TAG) and len(tag) > len(JOB_TAG):
            return printable(tag[len(JOB_TAG) :])
    return ""


def printable(raw: Any) -> str:
    """Return untrusted text, short and printable."""
    return "".join(char for char in str(raw or "") if char.isprintable())[:120]


def _sum(sizes: Iterator[Size]) -> Size:
    total = Size()
    for one in sizes:
        total = total.plus(one)
    return total


def as_objects(raw: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a list; some versions write a single object without its list."""
    found = [raw] if isinstance(raw, Mapping) else list(raw or [])
    return [one for one in found if isinstance(one, Mapping)]


def as_int(raw: Any) -> int:
    """Return a number; 0 if it is not one."""
    try:
        return int(float(raw or 0))
    except (TypeError, ValueError):
        return 0


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
