"""The cluster as a whole: queues, nodes, GPUs free and held, by whom; asked once for all pages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from submarine_jobs.backends import GpuHolder, NodeUse, Overview, QueueUse, located_gpus
from submarine_jobs.commands.grammar import remember_queues
from submarine_jobs.config import Config
from submarine_jobs.model import hadoop_user
from submarine_jobs.text import one_line
from submarine_jobs.tracking import IndexEntry, JobQuery
from submarine_runtime.protocol.states import State
from submarine_server.base import BaseHandler, api_error, guarded
from submarine_server.service import Core
from submarine_server.views import Json

#: Seconds for which what the cluster said is good, and for which it may be asked.
FRESH, ASKING = 5.0, 25.0
MAX_QUEUES, MAX_NODES, MAX_HELD, MAX_HOLDERS = 500, 5000, 20, 500
WORD = 200


class ClusterHandler(BaseHandler):
    """``GET cluster``."""

    @guarded("read")
    async def get(self) -> None:
        """See ``ICluster``; where nobody answers, empty with the reason as ``problem``."""
        try:
            found = await cluster_now(self.core)
        except Exception as error:
            failure = api_error(error)
            if failure is None:
                raise
            found = cluster_json("", Overview(), problem=f"{failure.error} {failure.fix}".strip())
        self.answer(found)


async def cluster_now(core: Core) -> Json:
    """``ICluster``, asked once for all that want it at about the same time."""
    return await core.shared("cluster", lambda: core.call(look, core, timeout=ASKING), FRESH)


def look(core: Core) -> Json:
    """``ICluster`` as it is now; blocks."""
    session = core.session_now()
    backend = session.backend()
    overview = backend.overview()
    names = [queue.name for queue in overview.queues if queue.state == "RUNNING"]
    remember_queues(Config(session.profile, ()), names)  # Tab knows them now
    running = session.store.page(JobQuery((State.RUNNING,), limit=500)).rows
    mine = [_held(row) for row in running if row.backend == backend.name]
    return cluster_json(backend.name, overview, mine, hadoop_user(session.profile.user))


@dataclass(frozen=True)
class Mine:
    """A job that this machine knows: where it holds how many GPUs, by its own word."""

    job_id: str
    application_id: str
    gpus: Mapping[str, int]


def _held(row: IndexEntry) -> Mine:
    gpus: Counter[str] = Counter()
    for task in row.record.tasks if row.record is not None else []:
        if task.host and task.gpus and task.finished is None:
            gpus[str(task.host)] += len(task.gpus)
    return Mine(row.job_id, str((row.handle or {}).get("application_id") or ""), gpus)


def cluster_json(
    backend: str, overview: Overview, mine: Sequence[Mine] = (), user: str = "", problem: str = ""
) -> Json:
    """``ICluster``; of GPUs those of nodes that take work."""
    known = {job.application_id: job.gpus for job in mine if job.application_id and job.gpus}
    names = {holder.application_id: holder.job_id for holder in overview.holders}
    held: dict[str, list[str]] = {}
    for job in mine:
        for host in job.gpus:
            held.setdefault(host, []).append(job.job_id)
    hosts = {identity: list(gpus) for identity, gpus in known.items()}
    for host, identities in located_gpus(overview, known).items():
        held.setdefault(host, []).extend(names[one] or one for one in identities)
        for identity in identities:
            hosts.setdefault(identity, []).append(host)
    usable = [node for node in overview.nodes if node.state == "RUNNING"]
    total = sum(node.gpus_total for node in usable)
    return {
        "backend": backend,
        "queues": [_queue(queue) for queue in overview.queues[:MAX_QUEUES]],
        "nodes": [_node(node, held.get(node.host, [])) for node in overview.nodes[:MAX_NODES]],
        "gpus_total": total,
        "gpus_free": max(0, total - sum(node.gpus_used for node in usable)),
        "holders": [
            _holder(holder, hosts.get(holder.application_id, []), user)
            for holder in overview.holders[:MAX_HOLDERS]
        ],
        "problem": problem,
    }


def _queue(queue: QueueUse) -> Json:
    return {
        "name": one_line(queue.name, WORD),
        "state": one_line(queue.state, WORD),
        "capacity": _finite(queue.capacity),
        "used": _finite(queue.used),
        "gpus_total": queue.gpus_total,
        "gpus_used": queue.gpus_used,
        "gpus_free": queue.gpus_free,
        "pending": queue.pending,
        "running": queue.running,
    }


def _node(node: NodeUse, held: list[str]) -> Json:
    return {
        "host": one_line(node.host, WORD),
        "state": one_line(node.state, WORD),
        "labels": [one_line(label, WORD) for label in node.labels[:MAX_HELD]],
        "memory_total": node.memory_total,
        "memory_used": node.memory_used,
        "vcores_total": node.vcores_total,
        "vcores_used": node.vcores_used,
        "gpus_total": node.gpus_total,
        "gpus_used": node.gpus_used,
        "held_by": [one_line(name, WORD) for name in held[:MAX_HELD]],
    }


def _holder(holder: GpuHolder, hosts: Sequence[str], user: str) -> Json:
    return {
        "application_id": one_line(holder.application_id, WORD),
        "job_id": one_line(holder.job_id, WORD) or None,
        "name": one_line(holder.name, WORD),
        "user": one_line(holder.user, WORD),
        "queue": one_line(holder.queue, WORD),
        "gpus": sum(holder.gpus.values()),
        "hosts": [one_line(host, WORD) for host in hosts[:MAX_HELD]],
        "mine": bool(user) and holder.user == user,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


ROUTES: list[tuple[str, Any]] = [(r"cluster", ClusterHandler)]
