"""Bounds of the queries on the whole cluster: what is requested, how long, and how often.

A ResourceManager of 4,000 nodes answers ``/nodes`` with 9 MB, and 1,000 applications with 4 MB.
"""

from __future__ import annotations

from typing import Any, Sequence

from submarine_runtime.yarn.applications import TAG, TYPES
from submarine_runtime.yarn.queues import queues_of

#: Maximum number of applications in the list of all users.
MAX_APPLICATIONS = 300
#: Seconds for which a response is reused: a short list, and one of more entries than ``LARGE`` and
#: ``HUGE``.
FRESH, FRESH_LARGE, FRESH_HUGE = 10.0, 60.0, 300.0
LARGE, HUGE = 100, 1000
#: Fields of an application that take most of its bytes. Resources in use are listed without them.
REQUESTS_AND_TIMEOUTS = "resourceRequests,timeouts"
#: The same, and the resources in use by node label.
ALL_DETAILS = f"{REQUESTS_AND_TIMEOUTS},resourceInfo"
#: Maximum size in bytes of a response on one application, and of others by their first name.
MAX_BYTES = 4 << 20
_MAX_BYTES_OF = {"nodes": 32 << 20, "apps": 32 << 20, "scheduler": 16 << 20}


def max_bytes(path: str) -> int:
    """Return the maximum size of the response for a path below ``/ws/v1/cluster``, in bytes."""
    first, _slash, more = path.strip("/").partition("/")
    return MAX_BYTES if more else _MAX_BYTES_OF.get(first, MAX_BYTES)


def lifetime(entries: Sequence[Any]) -> float:
    """Return the seconds for which a list is reused; none if it is empty."""
    if not entries:
        return 0.0
    if len(entries) > HUGE:
        return FRESH_HUGE
    return FRESH_LARGE if len(entries) > LARGE else FRESH


def applications_query(scheduler: Any, states: Sequence[str]) -> dict[str, str]:
    """Return the query for the active applications of all users.

    On a cluster with many applications these are the jobs of Submarine only.

    Parameters
    ----------
    scheduler
        Answer to ``/scheduler``, which has the number of applications.
    """
    query = {
        "states": ",".join(states),
        "deSelects": REQUESTS_AND_TIMEOUTS,
        "limit": str(MAX_APPLICATIONS),
    }
    leaves = [queue for queue in queues_of(scheduler) if queue.leaf]
    count = sum(queue.running_applications + queue.pending_applications for queue in leaves)
    if count > MAX_APPLICATIONS:
        query.update(applicationTags=TAG, applicationTypes=TYPES)
    return query
