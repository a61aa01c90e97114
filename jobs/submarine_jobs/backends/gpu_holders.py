"""On which nodes applications hold their GPUs, where that follows from what the cluster tells.

YARN tells how many GPUs an application holds, and how many of a node are held, but not which of
them where. What is certain is said and nothing else. Asks nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from submarine_jobs.backends.overview import Holder, NodeUse, Overview

#: Application -> host -> GPUs, of applications that say so themselves.
Known = Mapping[str, Mapping[str, int]]


def placed(overview: Overview, known: Known) -> dict[str, list[str]]:
    """Host -> ids of the applications that certainly hold GPUs there, besides those in ``known``.

    Told for the nodes of each label by themselves: where all that is left is on one host, everybody
    who is left is there; and where one application is left, it is on all that are left.
    """
    found: dict[str, list[str]] = {}
    for label in {label for holder in overview.holders for label in holder.gpus}:
        for host, identity in _of_label(overview.holders, _nodes_of(overview, label), label, known):
            found.setdefault(host, []).append(identity)
    return found


def _nodes_of(overview: Overview, label: str) -> list[NodeUse]:
    return [node for node in overview.nodes if (label in node.labels if label else not node.labels)]


def _of_label(
    holders: Sequence[Holder], nodes: Sequence[NodeUse], label: str, known: Known
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
    # The two answers may be of different moments, or a node may hold what nobody has told.
    if sum(left.values()) != sum(hosts.values()) or any(count < 0 for count in used.values()):
        return []
    if len(hosts) == 1 or len(left) == 1:
        return [(host, identity) for host in hosts for identity in sorted(left)]
    return []
