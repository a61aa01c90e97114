"""Why a container is not there yet: one clause, from what the ResourceManager says; asks nobody.

Judged in the order in which the scheduler does: node labels, size of the nodes, the share that
masters may hold, the queue and those above it, the user's limit, room on single nodes. Used by the
coordinator, and by the notebook's side for a master that waits and for ``doctor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from submarine_runtime.yarn.capacity import (
    Holder,
    Node,
    Size,
    holders,
    name_among,
    nearest,
    plain,
    running_nodes,
)
from submarine_runtime.yarn.pending_sentences import counted, free_words, held, words
from submarine_runtime.yarn.queues import Queue, queue_of


@dataclass(frozen=True)
class Need:
    """Containers that are waited for: how many, how large each, and where they may be.

    Parameters
    ----------
    memory
        MiB, all in.
    nodes, racks
        Only there; empty: anywhere.
    master
        Whether it is the application's master, which has a share of its own in the queue.
    """

    count: int
    memory: int
    vcores: int = 1
    gpus: int = 0
    label: str = ""
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    master: bool = False

    @property
    def size(self) -> Size:
        """One of them."""
        return Size(self.memory, self.vcores, self.gpus)


def explain(
    needs: Sequence[Need],
    queue: str,
    *,
    scheduler: Any,
    nodes: Any,
    apps: Any = None,
    user: str = "",
    application_id: str = "",
    guess: bool = True,
) -> str:
    """``queue gpu has 2 of 4 GPUs free, job x holds 2``; empty when nothing is needed.

    Parameters
    ----------
    queue
        Short name or path.
    scheduler, nodes, apps
        JSON of ``/ws/v1/cluster/scheduler``, ``/nodes`` and ``/apps?states=ACCEPTED,RUNNING`` as
        it stands; ``apps`` None: nobody is named.
    user, application_id
        Who waits; their own share is not somebody else's.
    guess
        Say something where there is room as well.
    """
    wanted = [need for need in needs if need.count > 0]
    case = _Case(queue, scheduler, running_nodes(nodes), holders(apps), user, application_id)
    for count_all in (False, True):
        for need in wanted:
            if sentence := case.why(need, need.count if count_all else 1):
                return sentence
    return case.otherwise() if guess and wanted else ""


class _Case:
    """One look at the cluster, for one application."""

    def __init__(
        self,
        queue: str,
        scheduler: Any,
        nodes: list[Node],
        apps: list[Holder],
        user: str,
        application_id: str,
    ) -> None:
        self._name, self._scheduler, self._nodes = queue, scheduler, nodes
        self._short = plain(queue.rpartition(".")[2])
        self._apps, self._user, self._id = apps, user, application_id
        own = [app for app in apps if app.id == application_id]
        self._reserved = own[0].reserved if own else Size()

    def why(self, need: Need, count: int) -> str:
        """Why ``count`` of these cannot all be placed now; empty if they can."""
        queue = queue_of(self._scheduler, self._name, need.label)
        for judge in (self._places, self._largest):
            if sentence := judge(need, count, queue):
                return sentence
        if sentence := self._masters(need, count, queue):
            # Where nothing is free at all, who has it says more than what masters may hold.
            return self._queues(need, count, queue) or self._room(need, count) or sentence
        if sentence := self._queues(need, count, queue):
            return sentence
        # YARN computes a user's limit anew all the time: it explains only what a lack does not.
        return self._room(need, count) or self._user_limit(need, count, queue)

    def otherwise(self) -> str:
        """There is room: who comes first."""
        reserved = [app for app in self._apps if any(app.reserved) and app.id != self._id]
        if reserved:
            return f"there is room, but YARN keeps it for {reserved[0].who}, which came first"
        own = [app for app in self._apps if app.id == self._id]
        before = [
            app
            for app in self._apps
            if app.waits and own and app.started < own[0].started and app.queue == own[0].queue
        ]
        if before:
            return f"queue {self._short}: {counted(len(before), 'job')} before it"
        return f"queue {self._short} has room; the scheduler is about to assign it"

    def _fitting(self, need: Need) -> list[Node]:
        return [
            node
            for node in self._nodes
            if (need.label in node.labels if need.label else not node.labels)
            and (not need.nodes or node.host in need.nodes or node.name in need.nodes)
            and (not need.racks or node.rack in need.racks)
        ]

    def _places(self, need: Need, count: int, queue: Queue | None) -> str:
        if not self._nodes:
            return "the cluster has no running node"
        allowed = queue.labels if queue is not None else None
        if need.label and allowed is not None and not {"*", need.label}.intersection(allowed):
            return f"queue {self._short} may not use nodes with the label {need.label}"
        if need.label and not any(need.label in node.labels for node in self._nodes):
            return f"no running node has the label {need.label}"
        if not self._fitting(need):
            where = ", ".join((*need.nodes, *need.racks)[:3])
            return f"{where} is not running" if where else "all running nodes are labelled"
        return ""

    def _largest(self, need: Need, count: int, queue: Queue | None) -> str:
        nodes = self._fitting(need)
        if any(not node.total.lacks(need.size) for node in nodes):
            return ""
        node = nearest(nodes, need.size, free=False)
        kinds = node.total.lacks(need.size)
        return (
            f"no node is large enough for {words(need.size, kinds)}: the nearest, "
            f"{name_among(node, nodes)}, has {words(node.total, kinds)} in all"
        )

    def _masters(self, need: Need, count: int, queue: Queue | None) -> str:
        if not need.master or queue is None or queue.masters is None:
            return ""
        kinds = queue.masters.minus(queue.masters_used).lacks(need.size)
        if kinds and any(queue.masters_used):
            return (
                f"queue {queue.name}: masters may hold {words(queue.masters, kinds)} in all and "
                f"hold {words(queue.masters_used, kinds)}; this one needs "
                f"{words(need.size, kinds)}"
            )
        mine = queue.users.get(self._user)
        if mine is None or queue.user_masters is None:
            return ""
        kinds = queue.user_masters.minus(mine[2]).lacks(need.size)
        if kinds and any(mine[2]):
            return (
                f"queue {queue.name}: your masters may hold {words(queue.user_masters, kinds)} "
                f"and hold {words(mine[2], kinds)}; this one needs {words(need.size, kinds)}"
            )
        return ""

    def _queues(self, need: Need, count: int, queue: Queue | None) -> str:
        for level in (queue, *queue.above) if queue is not None else ():
            if level.limit is None:
                continue
            free = level.limit.minus(level.used.minus(self._reserved))
            all_of_them = need.size.times(count)
            kinds = level.limit.lacks(all_of_them)
            if kinds:
                limit, these = words(level.limit, kinds), "this one needs"
                these = these if count == 1 else f"{count} containers need"
                return (
                    f"queue {level.name} may hold {limit}, and {these} {words(all_of_them, kinds)}"
                )
            kinds = free.lacks(all_of_them)
            if kinds:
                inside = [app for app in self._apps if _belongs(app, level)]
                what = free_words(free, level.limit, kinds[0])
                return f"queue {level.name} has {what}" + held(inside, kinds[0], self._id)
        return ""

    def _user_limit(self, need: Need, count: int, queue: Queue | None) -> str:
        mine = queue.users.get(self._user) if queue is not None else None
        if queue is None or mine is None or mine[1] is None:
            return ""
        # The scheduler lets a user go over by one container, so only an exceeded limit says no.
        kinds = mine[1].lacks(mine[0])
        if not kinds:
            return ""
        own = [app for app in self._apps if app.user == self._user and _belongs(app, queue)]
        limit, used = words(mine[1], kinds[:1]), words(mine[0], kinds[:1])
        return f"queue {queue.name} lets one user hold {limit} and you hold {used}" + held(
            own, kinds[0], self._id
        )

    def _room(self, need: Need, count: int) -> str:
        nodes = self._fitting(need)
        fits = sum(node.free.fits(need.size) for node in nodes)
        if fits >= count:
            return ""
        free, total = Size(), Size()
        for node in nodes:
            free, total = free.plus(node.free), total.plus(node.total)
        kinds = free.lacks(need.size.times(count))
        where = f"the nodes with the label {need.label} have" if need.label else "the cluster has"
        if kinds:
            return f"{where} {free_words(free, total, kinds[0])}" + held(
                self._apps, kinds[0], self._id
            )
        if fits:
            return f"there is room for {fits} of {count} at present"
        node = nearest(nodes, need.size, free=True)
        kinds, name = node.free.lacks(need.size), name_among(node, nodes)
        lacking = f"no node has {words(need.size, kinds)} free: the nearest, {name}, has "
        return lacking + words(node.free, kinds) + held(self._apps, kinds[0], self._id)


def _belongs(app: Holder, queue: Queue) -> bool:
    inside = app.queue == queue.path or app.queue.startswith(queue.path + ".")
    return inside or app.queue == queue.name
