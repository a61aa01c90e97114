"""What a backend says of itself as a whole: queues, nodes, and what of them is in use.

Data only, and this machine as a cluster of one node; YARN's is ``yarn.overview``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil

from submarine_runtime.gpus import device_numbers, look


@dataclass(frozen=True)
class QueueUse:
    """One queue that takes jobs.

    Parameters
    ----------
    capacity, used
        Percent of the cluster that is guaranteed, and in use; None: not said.
    gpus_total, gpus_used
        The most that it may hold, and what it holds; None: not said.
    gpus_free
        What a job could get there now: of its own share, and of what no other queue holds. None:
        not said.
    pending, running
        Applications that wait for a container, and those that the queue has let in. One that has
        some of its containers and waits for others is both.
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
class Holder:
    """Somebody's application that holds GPUs.

    Parameters
    ----------
    job_id
        Empty: no job of Submarine.
    gpus
        How many, by node label; the empty one is that of nodes without.
    """

    application_id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    job_id: str = ""
    gpus: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    """All queues and nodes; ``holders`` as far as is known without asking for them."""

    queues: tuple[QueueUse, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    holders: tuple[Holder, ...] = ()


def this_machine() -> Overview:
    """One node without queues."""
    memory, cores = psutil.virtual_memory(), psutil.cpu_count() or 1
    seen = look(device_numbers())
    node = NodeUse(
        host=socket.gethostname(),
        memory_total=memory.total >> 20,
        memory_used=(memory.total - memory.available) >> 20,
        vcores_total=cores,
        vcores_used=min(cores, round(os.getloadavg()[0])),
        gpus_total=len(seen.devices),
        gpus_used=sum(device in seen.busy for device in seen.devices),
    )
    return Overview(nodes=(node,))
