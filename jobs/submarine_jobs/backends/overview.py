"""Overview of a backend: queues, nodes, their use, and the applications that hold GPUs.

Each backend creates its own: ``local.backend`` and ``yarn.cluster.overview``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueueUse:
    """One queue that accepts jobs.

    Parameters
    ----------
    capacity, used
        Guaranteed and used percent of the cluster; None: unknown.
    gpus_total, gpus_used
        Maximum and used number of GPUs; None: unknown.
    gpus_free
        GPUs that a job could get now, from the share of the queue and unused shares. None:
        unknown.
    pending, running
        Applications that wait for a container, and activated applications. An application that
        waits for further containers counts as both.
    """

    name: str
    state: str = "RUNNING"
    capacity: float | None = None
    used: float | None = None
    gpus_total: int | None = None
    gpus_used: int | None = None
    gpus_free: int | None = None
    pending: int = 0
    running: int = 0


@dataclass(frozen=True)
class NodeUse:
    """One node; memory in MiB."""

    host: str
    state: str = "RUNNING"
    labels: tuple[str, ...] = ()
    memory_total: int = 0
    memory_used: int = 0
    vcores_total: int = 0
    vcores_used: int = 0
    gpus_total: int = 0
    gpus_used: int = 0


@dataclass(frozen=True)
class GpuHolder:
    """An application that holds GPUs, of any user.

    Parameters
    ----------
    job_id
        Empty: not a Submarine job.
    gpus
        Number by node label; the key of nodes without label is empty.
    """

    application_id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    job_id: str = ""
    gpus: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    """All queues and nodes; ``holders`` are those that are known without further requests."""

    queues: tuple[QueueUse, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    holders: tuple[GpuHolder, ...] = ()


#: Application -> host -> GPUs, as reported by the applications themselves.
KnownGpus = Mapping[str, Mapping[str, int]]


def located_gpus(overview: Overview, known: KnownGpus) -> dict[str, list[str]]:
    """Return host -> ids of the applications that certainly hold GPUs there, except ``known``.

    YARN reports the GPUs of each application and of each node, but not which are where. For each
    label, the location is certain if one host or one application remains.
    """
    found: dict[str, list[str]] = {}
    for label in {label for holder in overview.holders for label in holder.gpus}:
        for host, identity in _of_label(overview.holders, _nodes_of(overview, label), label, known):
            found.setdefault(host, []).append(identity)
    return found


def _nodes_of(overview: Overview, label: str) -> list[NodeUse]:
    return [node for node in overview.nodes if (label in node.labels if label else not node.labels)]


def _of_label(
    holders: Sequence[GpuHolder], nodes: Sequence[NodeUse], label: str, known: KnownGpus
) -> list[tuple[str, str]]:
    used: Counter[str] = Counter()
    for node in nodes:
        used[node.host] += node.gpus_used
    left = {holder.application_id: holder.gpus.get(label, 0) for holder in holders}
    for identity, places in known.items():
        left.pop(identity, None)
        used.subtract({host: count for host, count in places.items() if host in used})
    left = {identity: count for identity, count in left.items() if count > 0}
    hosts = {host: count for host, count in used.items() if count > 0}
    # The two reports may be of different times, or a node may have unreported GPUs.
    if sum(left.values()) != sum(hosts.values()) or any(count < 0 for count in used.values()):
        return []
    if len(hosts) == 1 or len(left) == 1:
        return [(host, identity) for host in hosts for identity in sorted(left)]
    return []
