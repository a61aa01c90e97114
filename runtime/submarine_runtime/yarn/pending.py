"""Explain why containers are missing, from answers of the ResourceManager.

The checks have the order of the scheduler: node labels, size of the nodes, the share of application
masters, the queue and its parents, the user's limit, free space on single nodes. The coordinator
uses this module, and the notebook's side for an application master and for ``doctor``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator, Sequence

from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn.applications import Application, ContainerRequest, applications_of
from submarine_runtime.yarn.fields import Size, printable
from submarine_runtime.yarn.nodes import Node, nearest, node_name, nodes_of
from submarine_runtime.yarn.queues import Queue, find_queue, queues_of

#: Maximal number of applications and nodes that a sentence names; the others are counted.
_NAMED = 3


class ClusterAnswers:
    """Answers on the whole cluster, each of which is parsed once, when it is needed.

    Parameters
    ----------
    scheduler, nodes, apps
        JSON of ``/ws/v1/cluster/scheduler``, ``/nodes`` and ``/apps?states=ACCEPTED,RUNNING`` as
        received; None: no answer.
    known
        Applications to use instead of ``apps``.
    """

    def __init__(
        self,
        scheduler: Any,
        nodes: Any,
        apps: Any = None,
        known: Sequence[Application] | None = None,
    ) -> None:
        self._scheduler, self._nodes, self._apps, self._known = scheduler, nodes, apps, known
        self._queues: dict[str, list[Queue]] = {}

    @cached_property
    def nodes(self) -> list[Node]:
        """The running nodes."""
        return [node for node in nodes_of(self._nodes) if node.running]

    @cached_property
    def applications(self) -> list[Application]:
        """The active applications."""
        apps = applications_of(self._apps) if self._known is None else self._known
        return [app for app in apps if app.active]

    def queue(self, name: str, label: str) -> Queue | None:
        """Return a queue by its short name or path, with its limits for a node label."""
        if label not in self._queues:
            self._queues[label] = queues_of(self._scheduler, label)
        return find_queue(self._queues[label], name)


def explain_pending(
    requests: Sequence[ContainerRequest],
    queue: str,
    answers: ClusterAnswers,
    *,
    user: str = "",
    application_id: str = "",
    always: bool = True,
) -> str:
    """Return ``queue gpu has 2 of 4 GPUs free, job x holds 2``; empty: no container is missing.

    Parameters
    ----------
    queue
        Short name or path.
    answers
        Without applications, no application is named.
    user, application_id
        User and application of the missing containers.
    always
        Return a sentence also if the containers fit.
    """
    missing = [request for request in requests if request.count > 0]
    cluster = _ClusterState(queue, answers, user, application_id)
    for count_all in (False, True):
        for request in missing:
            if sentence := cluster.missing_resource(request, request.count if count_all else 1):
                return sentence
    return cluster.scheduling_reason() if always and missing else ""


class _ClusterState:
    """State of the cluster at one time, as one application sees it."""

    def __init__(self, queue: str, answers: ClusterAnswers, user: str, application_id: str) -> None:
        self._name, self._answers = queue, answers
        self._nodes, self._apps = answers.nodes, answers.applications
        self._short = printable(queue.rpartition(".")[2])
        self._user, self._id = user, application_id
        own = [app for app in self._apps if app.id == application_id]
        self._reserved = own[0].reserved if own else Size()

    def missing_resource(self, request: ContainerRequest, count: int) -> str:
        """Return why ``count`` containers cannot be placed now; empty if they can."""
        queue = self._answers.queue(self._name, request.label)
        for check in (self._no_suitable_node, self._too_large):
            if sentence := check(request, count, queue):
                return sentence
        if sentence := self._master_share(request, count, queue):
            # If nothing is free, the holders explain more than the share of masters.
            return (
                self._queue_limits(request, count, queue)
                or self._node_space(request, count)
                or sentence
            )
        if sentence := self._queue_limits(request, count, queue):
            return sentence
        # YARN recomputes a user's limit continuously, so it is checked last.
        return self._node_space(request, count) or self._user_limit(request, count, queue)

    def scheduling_reason(self) -> str:
        """Return what the scheduler waits for although the containers fit."""
        reserved = [app for app in self._apps if any(app.reserved) and app.id != self._id]
        if reserved:
            return _("there is space, but YARN has reserved it for {label}").format(
                label=reserved[0].label
            )
        own = [app for app in self._apps if app.id == self._id]
        before = [
            app
            for app in self._apps
            if not app.used.memory
            and own
            and app.started < own[0].started
            and app.queue == own[0].queue
        ]
        if before:
            return _("queue {short}: {waiting_count} before it").format(
                short=self._short, waiting_count=waiting_count(len(before), "job")
            )
        return _("queue {short} has space; the scheduler is about to assign it").format(
            short=self._short
        )

    def _eligible_nodes(self, request: ContainerRequest) -> list[Node]:
        return [
            node
            for node in self._nodes
            if (request.label in node.labels if request.label else not node.labels)
            and (not request.nodes or node.host in request.nodes or node.name in request.nodes)
            and (not request.racks or node.rack in request.racks)
        ]

    def _no_suitable_node(self, request: ContainerRequest, count: int, queue: Queue | None) -> str:
        if not self._nodes:
            return _("the cluster has no running node")
        allowed = queue.labels if queue is not None else None
        if request.label and allowed is not None and not {"*", request.label}.intersection(allowed):
            return _("queue {short} may not use nodes with the label {label}").format(
                short=self._short, label=request.label
            )
        if request.label and not any(request.label in node.labels for node in self._nodes):
            return _("no running node has the label {label}").format(label=request.label)
        if not self._eligible_nodes(request):
            where = ", ".join((*request.nodes, *request.racks)[:3])
            return (
                _("{where} is not running").format(where=where)
                if where
                else _("all running nodes are labelled")
            )
        return ""

    def _too_large(self, request: ContainerRequest, count: int, queue: Queue | None) -> str:
        nodes = self._eligible_nodes(request)
        if any(not node.total.lacks(request.size) for node in nodes):
            return ""
        node = nearest(nodes, request.size, free=False)
        kinds = node.total.lacks(request.size)
        return _(
            "no node is large enough for {amounts}: the nearest, {node_name}, has "
            "{total_amounts} in all"
        ).format(
            amounts=amounts(request.size, kinds),
            node_name=node_name(node, nodes),
            total_amounts=amounts(node.total, kinds),
        )

    def _master_share(self, request: ContainerRequest, count: int, queue: Queue | None) -> str:
        if not request.master or queue is None or not queue.masters or not any(queue.masters):
            return ""
        kinds = queue.masters.minus(queue.masters_used).lacks(request.size)
        if kinds and any(queue.masters_used):
            return _(
                "queue {queue}: masters may hold {amounts} in all and hold "
                "{masters_used_amounts}; this one needs {size_amounts}"
            ).format(
                queue=queue.name,
                amounts=amounts(queue.masters, kinds),
                masters_used_amounts=amounts(queue.masters_used, kinds),
                size_amounts=amounts(request.size, kinds),
            )
        own_use = queue.users.get(self._user)
        if own_use is None or not queue.user_masters or not any(queue.user_masters):
            return ""
        kinds = queue.user_masters.minus(own_use[2]).lacks(request.size)
        if kinds and any(own_use[2]):
            return _(
                "queue {queue}: your masters may hold {amounts} and hold {own_use_amounts}; "
                "this one needs {size_amounts}"
            ).format(
                queue=queue.name,
                amounts=amounts(queue.user_masters, kinds),
                own_use_amounts=amounts(own_use[2], kinds),
                size_amounts=amounts(request.size, kinds),
            )
        return ""

    def _queue_limits(self, request: ContainerRequest, count: int, queue: Queue | None) -> str:
        for level in (queue, *queue.above) if queue is not None else ():
            if level.limit is None:
                continue
            free = level.limit.minus(level.used.minus(self._reserved))
            all_of_them = request.size.times(count)
            kinds = level.limit.lacks(all_of_them)
            if kinds:
                subject = (
                    _("this one needs")
                    if count == 1
                    else _("{count} containers need").format(count=count)
                )
                limit, needed = amounts(level.limit, kinds), amounts(all_of_them, kinds)
                return _("queue {level} may hold {limit}, and {subject} {needed}").format(
                    level=level.name, limit=limit, subject=subject, needed=needed
                )
            kinds = free.lacks(all_of_them)
            if kinds:
                inside = [app for app in self._apps if _belongs(app, level)]
                what = free_text(free, level.limit, kinds[0])
                return _("queue {level} has {what}").format(level=level.name, what=what) + held_by(
                    inside, kinds[0], self._id
                )
        return ""

    def _user_limit(self, request: ContainerRequest, count: int, queue: Queue | None) -> str:
        own_use = queue.users.get(self._user) if queue is not None else None
        if queue is None or own_use is None or own_use[1] is None:
            return ""
        # The scheduler allows one container above the limit, so only an exceeded limit counts.
        kinds = own_use[1].lacks(own_use[0])
        if not kinds:
            return ""
        own = [app for app in self._apps if app.user == self._user and _belongs(app, queue)]
        limit, used = amounts(own_use[1], kinds[:1]), amounts(own_use[0], kinds[:1])
        return _("queue {queue} lets one user hold {limit} and you hold {used}").format(
            queue=queue.name, limit=limit, used=used
        ) + held_by(own, kinds[0], self._id)

    def _node_space(self, request: ContainerRequest, count: int) -> str:
        nodes = self._eligible_nodes(request)
        fits = sum(node.free.fits(request.size) for node in nodes)
        if fits >= count:
            return ""
        free, total = Size(), Size()
        for node in nodes:
            free, total = free.plus(node.free), total.plus(node.total)
        kinds = free.lacks(request.size.times(count))
        where = (
            _("the nodes with the label {label} have").format(label=request.label)
            if request.label
            else _("the cluster has")
        )
        if kinds:
            return f"{where} {free_text(free, total, kinds[0])}" + held_by(
                self._apps, kinds[0], self._id
            )
        if fits:
            return _("there is space for {fits} of {count} at present").format(
                fits=fits, count=count
            )
        node = nearest(nodes, request.size, free=True)
        kinds, name = node.free.lacks(request.size), node_name(node, nodes)
        lacking = _("no node has {amounts} free: the nearest, {name}, has ").format(
            amounts=amounts(request.size, kinds), name=name
        )
        return lacking + amounts(node.free, kinds) + held_by(self._apps, kinds[0], self._id)


def _belongs(app: Application, queue: Queue) -> bool:
    inside = app.queue == queue.path or app.queue.startswith(queue.path + ".")
    return inside or app.queue == queue.name


def free_text(free: Size, total: Size, kind: str) -> str:
    """Return ``2 of 4 GPUs free``."""
    have, of = getattr(free, kind), getattr(total, kind)
    if kind == "gpus":
        return ngettext("{have} of {of} GPU free", "{have} of {of} GPUs free", of).format(
            have=have, of=of
        )
    unit = "MiB" if kind == "memory" else "vcores"
    return _("{have} of {of} {unit} free").format(have=have, of=of, unit=unit)


def amounts(amount: Size, kinds: Sequence[str]) -> str:
    """Return ``2 GPUs and 4096 MiB``, limited to ``kinds``."""
    return " and ".join(_parts(amount, kinds))


def _parts(amount: Size, kinds: Sequence[str]) -> Iterator[str]:
    for kind in kinds:
        value = getattr(amount, kind)
        if kind == "memory":
            yield _("{value} MiB").format(value=value)
        else:
            one = "GPU" if kind == "gpus" else "vcore"
            yield f"{value} {one}{'' if value == 1 else 's'}"


def held_by(apps: Sequence[Application], kind: str, own: str) -> str:
    """Return ``, job x holds 2, job y holds 1``; empty if no holder is known.

    Parameters
    ----------
    own
        Id of the waiting application.
    """
    held = [(getattr(app.used, kind), getattr(app.reserved, kind), app) for app in apps]
    holding = sorted((one for one in held if one[0] or one[1]), key=lambda one: -sum(one[:2]))
    parts = []
    for used, kept, app in holding[:_NAMED]:
        holder = _("this job") if app.id == own else app.label
        if used:
            parts.append(
                _("{holder} holds {amount}").format(holder=holder, amount=_amount(used, kind))
            )
        elif app.id != own:
            parts.append(
                ngettext(
                    "{amount} is reserved for {holder}", "{amount} are reserved for {holder}", kept
                ).format(amount=_amount(kept, kind), holder=holder)
            )
    more = holding[_NAMED:]
    if more:
        rest = _amount(sum(used + kept for used, kept, _ in more), kind)
        others = ngettext("another holds {rest}", "{count} others hold {rest}", len(more))
        parts.append(others.format(count=len(more), rest=rest))
    return "".join(f", {part}" for part in parts)


def _amount(value: int, kind: str) -> str:
    return _("{value} MiB").format(value=value) if kind == "memory" else str(value)


def localizing_sentence(
    nodes: Sequence[str], seconds: float = 0.0, what: str = "", ready: str = ""
) -> str:
    """Return ``localizing on node-7 for 40 s: environment (1.4 GB); 3 of 4 tasks are ready``.

    Parameters
    ----------
    seconds
        Duration so far, shown in growing steps: each new sentence is a line of ``run --wait``.
    what
        The files that YARN localizes, with their size.
    ready
        The tasks that have their files already.
    """
    hosts = list(dict.fromkeys(node.partition(":")[0] for node in nodes if node))
    where = ""
    if hosts:
        where = " on " + (
            ", ".join(hosts[:_NAMED])
            if len(hosts) <= _NAMED
            else _("{count} nodes").format(count=len(hosts))
        )
    sentence = f"localizing{where}{_duration(int(seconds))}"
    return sentence + (f": {what}" if what else "") + (f"; {ready}" if ready else "")


def _duration(seconds: int) -> str:
    if seconds < 10:
        return ""
    if seconds < 60:
        return _(" for {seconds} s").format(seconds=seconds // 10 * 10)
    minutes, rest = divmod(seconds, 60)
    half = " 30 s" if rest >= 30 and minutes < 10 else ""
    return _(" for {minutes} min{half}").format(minutes=minutes, half=half)


def waiting_count(count: int, what: str) -> str:
    """Return ``1 job waits`` or ``3 jobs wait``."""
    return _("1 {what} waits").format(what=what) if count == 1 else f"{count} {what}s wait"
