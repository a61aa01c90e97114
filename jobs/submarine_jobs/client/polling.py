"""One look at jobs on display of which no agent tells: what the backend and their directories say.

Blocks; ``watch`` decides when, and what becomes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from submarine_jobs.backends import Observation, Stage
from submarine_jobs.client.views import known_of, shipped_view, unheard
from submarine_jobs.client.watched_job import Watched
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import JobView
from submarine_jobs.tracking import Target, settle, without_directory

if TYPE_CHECKING:
    from submarine_jobs.client.session import Session

log = logging.getLogger(__name__)

#: What says how the backends see jobs; ``observing.observe_all`` asks them.
Observe = Callable[[Iterable[Target]], Mapping[str, Observation]]
#: Attempts to hear an agent before the shipped log is shown in its place.
UNHEARD = 2


def look(session: Session, waiting: Sequence[Watched], observe: Observe) -> dict[str, JobView]:
    """A view of each job of which something can be said.

    Raises
    ------
    ClusterError
        If a backend or the file system does not answer.
    """
    targets = [Target(known_of(item.job), item.job.directory, item.job.backend) for item in waiting]
    observations = observe(targets)
    views: dict[str, JobView] = {}
    for item, target in zip(waiting, targets, strict=True):
        try:
            views[item.job.id] = _view(session, item, target, observations.get(item.job.id))
        except FileNotFoundError:
            continue
        except ClusterError:
            raise
        except Exception:  # one job whose directory holds nonsense must not stop the others
            log.exception("job %s cannot be looked at", item.job.id)
    return views


def _view(
    session: Session, item: Watched, target: Target, observation: Observation | None
) -> JobView:
    record = item.last_word() if item.over else None
    record = record or settle(target, observation, session.store)
    item.placed = observation is not None and observation.stage is Stage.RUNNING
    pending = observation.pending if observation else ""
    if item.silent is not None and item.placed and not record.state.ended:
        record = without_directory(target, observation, session.store, item.silent)
        return JobView(unheard(item.job, record), "", record.pending, "backend")
    record = unheard(item.job, record)
    if record.state.ended:
        return JobView(record, item.last_tail(record), "", "final")
    if item.unheard >= UNHEARD and item.placed:
        return shipped_view(item.job, record, pending)
    return JobView(record, "", pending or record.pending, "backend")
