"""Check a Spark job against the live cluster, and compute the sizes of its containers.

The driver runs in the application master's container. Spark adds an overhead to the memory of each
container; that of the driver also holds Python, which runs beside the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from submarine_jobs.backends.base import Plan
from submarine_jobs.backends.yarn.planning.single import (
    AGENT_MEMORY,
    ClusterView,
    container,
    format_container_size,
    queue_errors,
    size_errors,
    warnings_of,
)
from submarine_jobs.inputs import localization_errors
from submarine_jobs.model import JobSpec
from submarine_runtime.translation import _
from submarine_runtime.yarn import Queue, Size, find_queue, queues_of

#: MiB beside Spark's own overhead in the driver's container, for the program's Python.
PYTHON_MEMORY = 512
#: Spark's default: the larger of both.
_LEAST_OVERHEAD, _OVERHEAD_FACTOR = 384, 0.1
_UNITS = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1 << 20}


def driver_overhead(spec: JobSpec) -> int:
    """Return the MiB that the driver's container has beside ``--memory``."""
    own = _overhead(spec.worker.resources.memory) + AGENT_MEMORY + PYTHON_MEMORY
    return _setting(spec, "spark.driver.memoryOverhead") or own


def make_spark_plan(spec: JobSpec, view: ClusterView, default_queue: str) -> Plan:
    """Return the plan of a Spark job; refusals are in its ``errors``."""
    request = spec.spark
    assert request is not None
    program, work = spec.worker.resources, request.resources
    overhead = driver_overhead(spec)
    beside = _setting(spec, "spark.executor.memoryOverhead") or _overhead(work.memory)
    driver = Size(view.steps.round(program.memory + overhead), program.vcores, program.gpus)
    executor = Size(view.steps.round(work.memory + beside), work.vcores, work.gpus)
    containers = [
        container(_("driver"), driver),
        {**container(_("executor"), executor), "count": request.executors},
    ]
    all_queues = queues_of(view.scheduler)
    name = spec.queue or default_queue
    queue = find_queue(all_queues, name)
    errors = localization_errors(spec) + queue_errors(all_queues, queue, name, view.user)
    if not errors and queue is not None:
        wanted = Size(program.memory, program.vcores, program.gpus)
        errors += size_errors(wanted, containers[:1], queue, view)
        errors += size_errors(
            Size(work.memory, work.vcores, work.gpus),
            containers[1:],
            queue,
            view,
            "--executor_resources",
        )
        errors += _master_errors(driver, queue)
    warnings = warnings_of(spec, queue, Size(memory=driver.memory), containers[:1])
    return Plan(
        placement=_("as a Spark application: the driver is in the application master's container"),
        containers=containers,
        overhead=overhead,
        warnings=warnings,
        errors=list(dict.fromkeys(errors)),
        extra={
            "queue": queue.name if queue else name,
            "queues": [item.name for item in all_queues if item.leaf and item.running],
        },
    )


def _master_errors(driver: Size, queue: Queue) -> list[str]:
    """Return why the queue never starts the driver: its limit for application masters."""
    limit = queue.masters
    if limit is None or limit.holds(driver):
        return []
    return [
        _(
            "Queue {queue} lets application masters hold {limit}, and the driver of a Spark job is "
            "one with {driver}; ask for less with --memory, or choose another queue."
        ).format(
            queue=queue.name,
            limit=format_container_size(limit),
            driver=format_container_size(driver),
        )
    ]


def _overhead(memory: int) -> int:
    return max(_LEAST_OVERHEAD, int(memory * _OVERHEAD_FACTOR))


def _setting(spec: JobSpec, key: str) -> int | None:
    """Return an amount of memory in the settings of Spark, in MiB; None if it is not one."""
    conf: Mapping[str, str] = spec.spark.conf if spec.spark is not None else {}
    found = re.fullmatch(r"(\d{1,9})([kmgt]?)b?", conf.get(key, "").strip().lower())
    return int(int(found[1]) * _UNITS[found[2]]) if found else None
