"""The cluster: queues, nodes, free GPUs and their holders. One request serves all pages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from submarine_jobs.backends import GpuHolder, NodeUse, Overview, QueueUse, located_gpus
from submarine_jobs.commands.grammar import cache_queues
from submarine_jobs.config import Config
from submarine_jobs.text import one_line
from submarine_jobs.tracking import IndexEntry, JobQuery
from submarine_runtime.protocol import State
from submarine_server.base import Answer, BaseHandler, api_error, guarded
from submarine_server.service import JobService
from submarine_server.views import ClusterJson, GpuHolderJson, Json, NodeJson, QueueJson

#: Seconds for which a result is valid, and timeout of the request to the cluster.
MAX_AGE, TIMEOUT = 5.0, 25.0
MAX_QUEUES, MAX_NODES, MAX_HELD, MAX_HOLDERS = 500, 5000, 20, 500
MAX_TEXT = 200


class ClusterHandler(BaseHandler):
    """``GET cluster``."""

    @guarded("read", Answer((ClusterJson,)))
    async def get(self) -> None:
        """Return ``ICluster``; without a response of the cluster, an empty one with ``problem``."""
        try:
            found = await cluster_now(self.service)
        except Exception as error:
            failure = api_error(error)
            if failure is None:
                raise
            found = cluster_json("", Overview(), problem=f"{failure.error} {failure.fix}".strip())
        self.finish_json(found)


async def cluster_now(service: JobService) -> Json:
    """Return ``ICluster``, shared by concurrent callers."""
    return await service.call_shared(
        "cluster", lambda: service.call(read_cluster, service, timeout=TIMEOUT), MAX_AGE
    )


def read_cluster(service: JobService) -> Json:
    """Read ``ICluster`` from the backend; blocks."""
    session = service.open_session()
    backend = session.backend()
    overview = backend.overview()
    names = [queue.name for queue in overview.queues if queue.state == "RUNNING"]
    cache_queues(Config(session.profile, ()), names)  # for the completion of queue names
    running = session.store.page(JobQuery((State.RUNNING,), limit=500)).rows
    own_jobs = [_own_job(row) for row in running if row.backend == backend.name]
    return cluster_json(backend.name, overview, own_jobs, session.user)


@dataclass(frozen=True)
class OwnJob:
    """A job of this machine's index and the GPUs that it holds, by host, from its own record."""

    job_id: str
    application_id: str
    gpus: Mapping[str, int]


def _own_job(row: IndexEntry) -> OwnJob:
    gpus: Counter[str] = Counter()
    for task in row.record.tasks if row.record is not None else []:
        if task.host and task.gpus and task.finished is None:
            gpus[str(task.host)] += len(task.gpus)
    return OwnJob(row.job_id, str((row.handle or {}).get("application_id") or ""), gpus)


def cluster_json(
    backend: str,
    overview: Overview,
    own_jobs: Sequence[OwnJob] = (),
    user: str = "",
    problem: str = "",
) -> Json:
    """Return ``ICluster``; GPU totals include only running nodes.

    Parameters
    ----------
    backend
        Name of the backend.
    own_jobs
        Jobs of this machine's index, to find the nodes of their GPUs.
    user
        Hadoop user of the server; identifies own holders of GPUs.
    problem
        Why there is no overview; empty if there is one.
    """
    known = {job.application_id: job.gpus for job in own_jobs if job.application_id and job.gpus}
    names = {holder.application_id: holder.job_id for holder in overview.holders}
    held: dict[str, list[str]] = {}
    for job in own_jobs:
        for host in job.gpus:
            held.setdefault(host, []).append(job.job_id)
    hosts = {identity: list(gpus) for identity, gpus in known.items()}
    for host, identities in located_gpus(overview, known).items():
        held.setdefault(host, []).extend(names[one] or one for one in identities)
        for identity in identities:
            hosts.setdefault(identity, []).append(host)
    usable = [node for node in overview.nodes if node.state == "RUNNING"]
    total = sum(node.gpus_total for node in usable)
    found: ClusterJson = {
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
    return cast("Json", found)


def _queue(queue: QueueUse) -> QueueJson:
    return {
        "name": one_line(queue.name, MAX_TEXT),
        "state": one_line(queue.state, MAX_TEXT),
        "capacity": _finite(queue.capacity),
        "used": _finite(queue.used),
        "gpus_total": queue.gpus_total,
        "gpus_used": queue.gpus_used,
        "gpus_free": queue.gpus_free,
        "pending": queue.pending,
        "running": queue.running,
    }


def _node(node: NodeUse, held: list[str]) -> NodeJson:
    return {
        "host": one_line(node.host, MAX_TEXT),
        "state": one_line(node.state, MAX_TEXT),
        "labels": [one_line(label, MAX_TEXT) for label in node.labels[:MAX_HELD]],
        "memory_total": node.memory_total,
        "memory_used": node.memory_used,
        "vcores_total": node.vcores_total,
        "vcores_used": node.vcores_used,
        "gpus_total": node.gpus_total,
        "gpus_used": node.gpus_used,
        "held_by": [one_line(name, MAX_TEXT) for name in held[:MAX_HELD]],
    }


def _holder(holder: GpuHolder, hosts: Sequence[str], user: str) -> GpuHolderJson:
    return {
        "application_id": one_line(holder.application_id, MAX_TEXT),
        "job_id": one_line(holder.job_id, MAX_TEXT) or None,
        "name": one_line(holder.name, MAX_TEXT),
        "user": one_line(holder.user, MAX_TEXT),
        "queue": one_line(holder.queue, MAX_TEXT),
        "gpus": sum(holder.gpus.values()),
        "hosts": [one_line(host, MAX_TEXT) for host in hosts[:MAX_HELD]],
        "mine": bool(user) and holder.user == user,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


ROUTES: list[tuple[str, Any]] = [(r"cluster", ClusterHandler)]
