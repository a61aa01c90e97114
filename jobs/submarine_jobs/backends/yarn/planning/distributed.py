"""Check a distributed spec against the live cluster, and list its containers.

A pure function of the spec and the ResourceManager's responses. Resources that are only in use at
present are not an error: the job waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from submarine_jobs.backends.base import Plan
from submarine_jobs.backends.yarn.planning.single import (
    AGENT_MEMORY,
    MASTER_MEMORY,
    ClusterView,
    container,
    format_container_size,
    format_gpus,
    queue_errors,
    size_errors,
    warnings_of,
)
from submarine_jobs.inputs import localization_errors
from submarine_jobs.model import JobSpec, Role
from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn import Node, Queue, Size, find_queue, nodes_of, queues_of, total_size

RACK_NODES = "rack_nodes"
"""Key of `Plan.extra`: nodes of the racks of each role that names racks."""
MAX_RACK_NODES = 200


def total(parts: Iterable[tuple[Size, int]]) -> Size:
    """Return the sum of sizes, each multiplied by its number."""
    return total_size(size.times(count) for size, count in parts)


def fitting(role: Role, size: Size, nodes: Iterable[Node]) -> int:
    """Return the number of containers of ``size`` that fit on the empty nodes of ``role``."""
    return sum(node.total.fits(size) for node in nodes if may_use(role, node))


def may_use(role: Role, node: Node) -> bool:
    """Whether label, node names and racks of ``role`` allow ``node``."""
    if role.node_label and role.node_label not in node.labels:
        return False
    if not (role.nodes or role.racks) or role.relax:
        return True
    return node.host in role.nodes or node.rack in role.racks


def least_of(role: Role) -> int:
    """Return the minimum number of instances of a role for a start."""
    return role.instances if role.least is None else min(role.least, role.instances)


def gang_of(spec: JobSpec) -> list[Role]:
    """Return the roles that must be ready before the job starts."""
    return [role for role in spec.roles if role.kind != "sidecar"]


#: MiB of supervisor and coordinator beside skein's master, and tasks that cost it one more; see
#: docs/yarn.md for the measurement.
COORDINATOR_MEMORY = 160
TASKS_A_MIB = 8


def make_gang_plan(spec: JobSpec, view: ClusterView, default_queue: str) -> Plan:
    """Return the plan of a distributed spec; refusals are in its ``errors``."""
    all_queues = queues_of(view.scheduler)
    name = spec.queue or default_queue
    queue = find_queue(all_queues, name)
    nodes = [node for node in nodes_of(view.nodes) if node.running]
    coordinator = COORDINATOR_MEMORY + spec.task_count // TASKS_A_MIB
    master = Size(view.steps.round(MASTER_MEMORY + coordinator), 1, 0)
    sizes = {role.name: _task_size(role, view) for role in spec.roles}
    containers = [container(_("application master and coordinator"), master)]
    containers += [
        {**container(role.name, sizes[role.name]), "role": role.name, "count": role.instances}
        for role in spec.roles
    ]
    errors = localization_errors(spec) + queue_errors(all_queues, queue, name, view.user)
    if not errors and queue is not None:
        errors = [text for role in spec.roles for text in _role_errors(role, nodes, queue)]
    if not errors and queue is not None:
        errors = [
            _("Role {role}: {text}").format(role=role.name, text=text)
            for role in spec.roles
            for text in size_errors(_program(role), [_entry(containers, role)], queue, view)
        ]
    if not errors and queue is not None:
        errors = _gang_errors(spec, sizes, master, nodes, queue, view)
    tasks, roles = spec.task_count, len(spec.roles)
    return Plan(
        placement=(
            ngettext(
                "{tasks} containers of {roles} role, which a coordinator in the application "
                "master's container starts together",
                "{tasks} containers of {roles} roles, which a coordinator in the application "
                "master's container starts together",
                roles,
            ).format(tasks=tasks, roles=roles)
        ),
        containers=containers,
        overhead=AGENT_MEMORY,
        warnings=warnings_of(spec, queue, _program(spec.worker), containers[:1])
        + _core_warnings(spec, sizes, nodes, view),
        errors=errors,
        extra={
            "queue": queue.name if queue else name,
            "queues": [item.name for item in all_queues if item.leaf and item.running],
            **_nodes_of_racks(spec, nodes),
        },
    )


def _nodes_of_racks(spec: JobSpec, nodes: list[Node]) -> dict[str, Any]:
    """Return the nodes of each role's racks, for the request: see `RACK_NODES`."""
    hosts = {
        role.name: sorted({node.host for node in nodes if node.rack in role.racks})
        for role in spec.roles
        if role.racks
    }
    limited = {name: found[:MAX_RACK_NODES] for name, found in hosts.items()}
    return {RACK_NODES: limited} if limited else {}


def _task_size(role: Role, view: ClusterView) -> Size:
    wanted = role.resources
    return Size(view.steps.round(wanted.memory + AGENT_MEMORY), wanted.vcores, wanted.gpus)


def _program(role: Role) -> Size:
    return Size(role.resources.memory, role.resources.vcores, role.resources.gpus)


def _entry(containers: list[dict[str, Any]], role: Role) -> dict[str, Any]:
    return next(entry for entry in containers if entry.get("role") == role.name)


def _role_errors(role: Role, nodes: list[Node], queue: Queue) -> list[str]:
    """Return errors for labels, nodes or racks that the cluster or the queue does not have."""
    label, title = role.node_label, _("Role {role}").format(role=role.name)
    if label and (role.nodes or role.racks):
        return [
            _(
                "{role}: YARN takes a node label or names of nodes and racks, not both; leave "
                "out one."
            ).format(role=title)
        ]
    if label:
        known = sorted({name for node in nodes for name in node.labels})
        if label not in known:
            have = (
                _("labels with nodes are {known}").format(known=", ".join(known))
                if known
                else _("no node has a label")
            )
            return [
                _("{role}: no running node has the label {label}; {have}.").format(
                    role=title, label=label, have=have
                )
            ]
        if queue.labels is not None and not {"*", label} & set(queue.labels):
            allowed = ", ".join(name for name in queue.labels if name) or "none"
            return [
                _("{role}: queue {queue} may not use the label {label}; it may: {allowed}.").format(
                    role=title, queue=queue.name, label=label, allowed=allowed
                )
            ]
    hosts = {node.host for node in nodes}
    racks = {node.rack for node in nodes}
    errors = [
        _("{role}: there is no running node {host}; the cluster has {some}.").format(
            role=title, host=host, some=_some(hosts)
        )
        for host in role.nodes
        if host not in hosts
    ]
    return errors + [
        _("{role}: there is no rack {rack}; the cluster has {some}.").format(
            role=title, rack=rack, some=_some(racks)
        )
        for rack in role.racks
        if rack not in racks
    ]


def _some(names: set[str]) -> str:
    first = ", ".join(sorted(names)[:5])
    return (
        _("{first} and {count} more").format(first=first, count=len(names) - 5)
        if len(names) > 5
        else first or _("none")
    )


def _gang_errors(
    spec: JobSpec,
    sizes: dict[str, Size],
    master: Size,
    nodes: list[Node],
    queue: Queue,
    view: ClusterView,
) -> list[str]:
    """Return errors if the gang does not fit into the otherwise empty cluster."""
    for role in gang_of(spec):
        places = fitting(role, sizes[role.name], nodes)
        if places < least_of(role):
            return [
                _(
                    "Role {role}: at most {places} containers of {sizes} fit on the cluster at "
                    "once, and {least} must run together."
                ).format(
                    role=role.name,
                    places=places,
                    sizes=format_container_size(sizes[role.name]),
                    least=least_of(role),
                )
            ]
    need = total([(master, 1), *((sizes[role.name], least_of(role)) for role in gang_of(spec))])
    cluster = total([(node.total, 1) for node in nodes])
    limits = [(cluster, _("the whole cluster has"))]
    if queue.most is not None:
        limits.append((queue.most, _("queue {queue} may ever hold").format(queue=queue.name)))
    labelled = any(role.node_label for role in spec.roles)
    if queue.most_share is not None and not labelled:
        share = _part(cluster, queue.most_share / 100)
        limits.append((share, _("queue {queue} may ever hold").format(queue=queue.name)))
    for limit, place in limits:
        if need.gpus > limit.gpus:
            return [
                _("The job needs {gpus} at once, and {place} {limit_gpus}.").format(
                    gpus=format_gpus(need.gpus), place=place, limit_gpus=limit.gpus
                )
            ]
        if need.memory > limit.memory:
            return [
                _("The job needs {memory} MiB at once, and {place} {limit_memory} MiB.").format(
                    memory=need.memory, place=place, limit_memory=limit.memory
                )
            ]
        # A cluster with GPUs must use the calculator that counts cores too.
        if view.knows_gpus and need.vcores > limit.vcores:
            return [
                _("The job needs {vcores} vcores at once, and {place} {limit_vcores}.").format(
                    vcores=need.vcores, place=place, limit_vcores=limit.vcores
                )
            ]
    return []


def _part(cluster: Size, share: float) -> Size:
    # A container may go over the limit by rounding; be sure before a refusal.
    return Size(
        *(int(value * share + 0.999) for value in (cluster.memory, cluster.vcores, cluster.gpus))
    )


def _core_warnings(
    spec: JobSpec, sizes: dict[str, Size], nodes: list[Node], view: ClusterView
) -> list[str]:
    need = total([(sizes[role.name], least_of(role)) for role in gang_of(spec)]).vcores
    cores = sum(node.total.vcores for node in nodes)
    if view.knows_gpus or need <= cores:
        return []
    return [
        _("The job asks for {need} vcores at once, and the whole cluster has {cores}.").format(
            need=need, cores=cores
        )
    ]
