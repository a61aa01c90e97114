"""Check a single-task spec against the live cluster, and choose its containers.

``make_plan`` is a pure function of the spec, two ResourceManager responses and the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from submarine_jobs.backends.base import Plan
from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.inputs import localization_errors
from submarine_jobs.model import JobSpec
from submarine_runtime.translation import _, ngettext
from submarine_runtime.yarn import (
    GPU,
    Queue,
    Size,
    find_queue,
    largest_node,
    nodes_of,
    offered_gpu_resource,
    queues_of,
)

#: MiB of skein's master: a JVM with -Xmx128M, C1 and the serial collector; see docs/yarn.md.
#: Measured: 171 to 181 MiB resident.
MASTER_MEMORY = 256
#: MiB of the agent (24) and of the helper process that serves its page (56).
AGENT_MEMORY = 96
#: MiB that the program may go over ``--memory`` before its agent ends it; YARN's own check must
#: come later than that.
SLACK_TOGETHER = 64
SLACK_BESIDE = 8


@dataclass(frozen=True)
class Steps:
    """How the scheduler rounds a container's size: minimum and increment of memory, in MiB."""

    minimum: int = 1024
    increment: int = 1024

    def round(self, memory: int) -> int:
        """Return ``memory`` as the scheduler allocates it."""
        over = max(memory, self.minimum)
        return -(-over // self.increment) * self.increment


def steps_of(conf: HadoopConf, said: int | None, *, fair: bool = False) -> Steps:
    """Return the rounding of sizes from the ResourceManager, or else from the client settings.

    The fair scheduler has an increment of its own, the others use the minimum.
    """
    minimum = said or int(conf.get("yarn.scheduler.minimum-allocation-mb", "1024") or 1024)
    increment = int(conf.get("yarn.scheduler.increment-allocation-mb") or (1024 if fair else 0))
    return Steps(max(minimum, 1), max(increment or minimum, 1))


@dataclass(frozen=True)
class ClusterView:
    """The responses of the ResourceManager.

    Parameters
    ----------
    user
        The submitting user; None if the cluster does not check queue permissions.
    """

    scheduler: Any
    nodes: Any
    steps: Steps
    knows_gpus: bool
    user: str | None = None


def make_plan(spec: JobSpec, view: ClusterView, default_queue: str) -> Plan:
    """Return the plan of a single-task spec; refusals are in its ``errors``."""
    program = spec.worker.resources
    wanted = Size(program.memory, program.vcores, program.gpus)
    all_queues = queues_of(view.scheduler)
    name = spec.queue or default_queue
    queue = find_queue(all_queues, name)
    errors = localization_errors(spec)
    errors += queue_errors(all_queues, queue, name, view.user)
    placement, containers, overhead = _place(wanted, queue, view.steps)
    if not errors and queue is not None:
        errors += size_errors(wanted, containers, queue, view)
    return Plan(
        placement=placement,
        containers=containers,
        overhead=overhead,
        warnings=warnings_of(spec, queue, wanted, containers),
        errors=errors,
        extra={
            "queue": queue.name if queue else name,
            "queues": [item.name for item in all_queues if item.leaf and item.running],
        },
    )


def _place(
    wanted: Size, queue: Queue | None, steps: Steps
) -> tuple[str, list[dict[str, Any]], int]:
    """Return sentence, containers and overhead: in the master's container, or separate."""
    overhead = MASTER_MEMORY + AGENT_MEMORY
    together = Size(steps.round(wanted.memory + overhead), wanted.vcores, wanted.gpus)
    if queue is None or _admits(queue, together):
        placement = _("in the application master's container: one container, no second wait")
        return placement, [container(_("program and application master"), together)], overhead
    master = Size(steps.round(MASTER_MEMORY), 1, 0)
    task = Size(steps.round(wanted.memory + AGENT_MEMORY), wanted.vcores, wanted.gpus)
    limit = queue.masters or Size()
    placement = _(
        "in a container of its own beside the application master: queue {queue} lets masters "
        "hold {limit}, and the program with its master needs {together}"
    ).format(
        queue=queue.name,
        limit=format_container_size(limit),
        together=format_container_size(together),
    )
    both = [container(_("application master"), master), container(_("program"), task)]
    return placement, both, overhead


def _admits(queue: Queue, together: Size) -> bool:
    """Whether the master fits into the queue's limit for masters, in total and at present."""
    if queue.masters is None:
        return True
    if not queue.masters.holds(together):
        return False
    return queue.user_masters is None or queue.user_masters.holds(together)


def queue_errors(
    all_queues: list[Queue], queue: Queue | None, name: str, user: str | None = None
) -> list[str]:
    """Return why the queue accepts no job, or no job of ``user``."""
    leaves = ", ".join(q.name for q in all_queues if q.leaf and q.running)[:300]
    if queue is None:
        return [
            _("There is no queue {name}; this cluster has {leaves}.").format(
                name=name, leaves=leaves
            )
        ]
    if not queue.leaf:
        below = [q.name for q in all_queues if q.leaf and q.path.startswith(queue.path + ".")]
        return [
            _("Queue {name} accepts no jobs itself; choose one below it: {below}.").format(
                name=name, below=", ".join(below)
            )
        ]
    if not queue.running:
        return [
            _("Queue {name} is stopped and accepts no jobs; running are {leaves}.").format(
                name=name, leaves=leaves
            )
        ]
    if user is not None and queue.submitters is not None and user not in queue.submitters:
        allowed = [
            q.name
            for q in all_queues
            if q.leaf and q.running and (q.submitters is None or user in q.submitters)
        ]
        which = (
            _("choose one of {allowed}").format(allowed=", ".join(allowed)[:300])
            if allowed
            else _("ask its administrator")
        )
        return [
            _("User {user} may not submit to queue {name}; {which}.").format(
                user=user, name=name, which=which
            )
        ]
    return []


def size_errors(
    wanted: Size,
    containers: list[dict[str, Any]],
    queue: Queue,
    view: ClusterView,
    option: str = "--memory",
) -> list[str]:
    """Return why one of ``containers`` can never be allocated.

    Parameters
    ----------
    wanted
        The program's size.
    option
        The option of its memory.
    """
    nodes = nodes_of(view.nodes)
    node, count = largest_node(nodes)
    if count == 0:
        return [
            _(
                "The cluster has no running node, so no job can start. After a failover of the "
                "ResourceManager the nodes register again: repeat the command in some seconds."
            )
        ]
    if wanted.gpus and not view.knows_gpus:
        return [
            _(
                "The client's Hadoop configuration does not know {name}; put the cluster's "
                "resource-types.xml beside core-site.xml, or ask for no GPU."
            ).format(name=offered_gpu_resource(view.nodes) or GPU)
        ]
    if wanted.gpus > node.gpus:
        most = (
            _("the largest node has {gpus}").format(gpus=format_gpus(node.gpus))
            if node.gpus
            else _("no node has any GPU")
        )
        return [
            _("The job asks for {gpus}, and {most}.").format(
                gpus=format_gpus(wanted.gpus), most=most
            )
        ]
    errors: list[str] = []
    largest = max(containers, key=lambda entry: int(entry["memory"]))
    need = Size(int(largest["memory"]), int(largest["vcores"]), int(largest["gpus"]))
    for limit, place in (
        (node, _("the largest node has")),
        (queue.maximum, _("the scheduler gives")),
        (queue.most, _("queue {queue} may ever hold").format(queue=queue.name)),
    ):
        if limit is None or errors:
            continue
        if need.memory > limit.memory:
            errors.append(
                _(
                    "The container needs {memory} MiB ({wanted_memory} for the program), and "
                    "{place} {limit_memory} MiB; ask for less with {option}."
                ).format(
                    memory=need.memory,
                    wanted_memory=wanted.memory,
                    place=place,
                    limit_memory=limit.memory,
                    option=option,
                )
            )
        elif need.vcores > limit.vcores:
            errors.append(
                _("The job asks for {vcores} vcores, and {place} {limit_vcores}.").format(
                    vcores=need.vcores, place=place, limit_vcores=limit.vcores
                )
            )
        elif need.gpus > limit.gpus:
            errors.append(
                _("The job asks for {gpus}, and {place} {limit_gpus}.").format(
                    gpus=format_gpus(need.gpus), place=place, limit_gpus=limit.gpus
                )
            )
    if not errors and not any(one.running and one.total.holds(need) for one in nodes):
        errors.append(
            _("No single node has {need} together.").format(need=format_container_size(need))
        )
    return errors


def warnings_of(
    spec: JobSpec, queue: Queue | None, wanted: Size, containers: list[dict[str, Any]]
) -> list[str]:
    """Return findings that do not prevent a submission."""
    found = []
    granted, asked = int(containers[-1]["memory"]), wanted.memory
    if granted > asked + MASTER_MEMORY + AGENT_MEMORY + 512:
        found.append(
            _("The scheduler rounds the container up to {granted} MiB.").format(granted=granted)
        )
    if queue is not None and queue.masters is not None:
        left = queue.masters.memory - queue.masters_used.memory
        if 0 <= left < int(containers[0]["memory"]):
            found.append(
                _(
                    "Queue {queue} has no capacity for another master at present: the job will "
                    "wait."
                ).format(queue=queue.name)
            )
    if any(urlsafe.startswith("http://") for urlsafe in (i.source for i in spec.localization)):
        found.append(_("A file is downloaded without encryption (http://)."))
    return found


def container(what: str, need: Size) -> dict[str, Any]:
    """Return an entry of ``Plan.containers``."""
    return {"what": what, "memory": need.memory, "vcores": need.vcores, "gpus": need.gpus}


def format_gpus(count: int) -> str:
    """Return ``1 GPU``, ``2 GPUs``."""
    return ngettext("{count} GPU", "{count} GPUs", count).format(count=count)


def format_container_size(need: Size) -> str:
    """Return ``2048 MiB and 1 vcore``."""
    text = ngettext(
        "{memory} MiB and {vcores} vcore", "{memory} MiB and {vcores} vcores", need.vcores
    ).format(memory=need.memory, vcores=need.vcores)
    return text + (_(" and {gpus}").format(gpus=format_gpus(need.gpus)) if need.gpus else "")
