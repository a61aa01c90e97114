"""Poll all jobs of one user: at most two requests for each poll, for any number of jobs.

The first request lists the active applications of the user, or from time to time those of all
users, to explain waits. The second lists the ended applications of the jobs. While waiting jobs or
the cluster are displayed, it reads the scheduler or the nodes in turn with that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice

from submarine_jobs.backends.base import Handle, Observation, Stage
from submarine_jobs.backends.yarn.cluster.applications import (
    application,
    explained,
    is_submarine,
    observation,
)
from submarine_jobs.backends.yarn.cluster.cache import APPS, NODES, SCHEDULER
from submarine_jobs.backends.yarn.cluster.pending_reasons import Waits
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.backends.yarn.cluster.tags import tag_of
from submarine_runtime.yarn import (
    ACTIVE_STATES,
    ALL_DETAILS,
    TAG,
    TYPES,
    Application,
    ContainerRequest,
    applications_of,
)

#: Maximum number of tags in one request.
_MAX_TAGS = 100
#: Seconds before an application that the ResourceManager does not have is requested again.
_MISSING_SECONDS = 300.0


class Survey:
    """Polls the jobs of one user on one cluster.

    Parameters
    ----------
    waits
        Explains waits; each poll updates its ``cache``.
    """

    def __init__(self, rm: ResourceManager, waits: Waits, user: str) -> None:
        self._rm, self._waits, self._cache, self._user = rm, waits, waits.cache, user
        #: Application that the ResourceManager does not have -> time of that response.
        self._missing_since: dict[str, float] = {}
        #: Active applications without their tag, which only a list without tags contains.
        self._untagged: set[str] = set()
        #: Applications that had all their containers, and pending requests of the others.
        self._placed: frozenset[str] = frozenset()
        self._needs: dict[str, Sequence[ContainerRequest]] = {}
        self._scheduler_skipped = False

    def poll(
        self, handles: Mapping[str, Handle], explain: Collection[str] = ()
    ) -> dict[str, Observation]:
        """See ``Backend.survey``.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        requested = {
            job_id: (str(handle["application_id"]), handle)
            for job_id, handle in handles.items()
            if handle.get("application_id")
        }
        if not requested:
            self._cache.refresh(SCHEDULER)
            return {}
        self._untagged &= {identity for identity, _ in requested.values()}
        shown = {requested[job_id][0] for job_id in explain if job_id in requested} - self._placed
        active = self._active(shown)
        apps = {app.id: app for app in active}
        apps.update(self._request_more(requested, apps, waits=bool(shown)))
        found: dict[str, Observation] = {}
        for job_id, (identity, handle) in requested.items():
            app = apps.get(identity)
            if app is None:
                found[job_id] = Observation(Stage.UNKNOWN, handle=handle)
            else:
                found[job_id] = observation(self._rm, app, handle)
        self._placed = frozenset(
            requested[job_id][0]
            for job_id, observed in found.items()
            if observed.stage in (Stage.STARTING, Stage.RUNNING)
        )
        waiting = {
            job_id: apps[requested[job_id][0]] for job_id in explain if _waits(found, job_id)
        }
        if not waiting:
            return found
        reasons = self._waits.explain_cached(list(waiting.values()), self._needs, self._all(active))
        return {**found, **explained(found, waiting, reasons)}

    def _active(self, shown: Set[str]) -> Sequence[Application]:
        """Make the first request: list the active applications of the user, or of all users.

        Parameters
        ----------
        shown
            Displayed applications that may wait.
        """
        all_users = bool(shown) or self._cache.viewed
        # The requests of the waiting applications come first: those of all users would be too long.
        all_users = all_users and self._needs.keys() >= shown and self._cache.is_old(APPS)
        if all_users and not self._untagged:
            found: list[Application] = self._cache.refresh(APPS)
            return found
        tags = {} if self._untagged else {"applicationTypes": TYPES, "applicationTags": TAG}
        own = applications_of(
            self._rm.get(
                "/apps",
                **tags,
                states=",".join(ACTIVE_STATES),
                user=self._user,
                deSelects="timeouts" if shown else ALL_DETAILS,
            )
        )
        needs = {app.id: app.requests for app in own if app.id in shown}
        self._needs = {identity: needs.get(identity, ()) for identity in shown}
        return own

    def _request_more(
        self,
        requested: Mapping[str, tuple[str, Handle]],
        apps: Mapping[str, Application],
        *,
        waits: bool,
    ) -> dict[str, Application]:
        """Make the second request; return the ended applications if it was for them."""
        now = time.monotonic()
        self._missing_since = {
            identity: since
            for identity, since in self._missing_since.items()
            if now - since < _MISSING_SECONDS
        }
        missing = {
            job_id: identity
            for job_id, (identity, _) in requested.items()
            if identity not in apps and identity not in self._missing_since
        }
        if not (waits or self._cache.viewed):
            return self._ended(missing)
        nodes = waits and self._cache.is_old(NODES) and not self._scheduler_skipped
        # At most every second poll; the next poll reads the scheduler.
        skip_scheduler = self._cache.latest(SCHEDULER) is not None and not self._scheduler_skipped
        self._scheduler_skipped = skip_scheduler and (bool(missing) or nodes)
        if not self._scheduler_skipped:
            self._cache.refresh(SCHEDULER)
        elif not missing:
            self._cache.refresh(NODES)
        return self._ended(missing)

    def _ended(self, missing: Mapping[str, str]) -> dict[str, Application]:
        """Return the ended applications of jobs (id -> application), requested by tag."""
        apps: dict[str, Application] = {}
        for some in _batches(missing, _MAX_TAGS):
            answer = self._rm.get(
                "/apps",
                applicationTypes=TYPES,
                applicationTags=",".join(tag_of(job_id) for job_id in some),
                deSelects=ALL_DETAILS,
            )
            apps.update((app.id, app) for app in applications_of(answer))
        for identity in missing.values():
            if identity in apps:
                continue
            app = application(self._rm, identity)  # the tag may be missing
            if app is None:
                self._missing_since[identity] = time.monotonic()
                continue
            apps[identity] = app
            if app.active:
                self._untagged.add(identity)
        return apps

    def _all(self, active: Sequence[Application]) -> list[Application]:
        """Return the cached applications of all users, with the current ones of this user."""
        now = {app.id: app for app in active}
        others = {
            app.id: app
            for app in self._cache.latest(APPS) or ()
            if app.user != self._user or not is_submarine(app)
        }
        return list({**others, **now}.values())


def _waits(found: Mapping[str, Observation], job_id: str) -> bool:
    return job_id in found and found[job_id].stage is Stage.WAITING


def _batches(items: Iterable[str], size: int) -> Iterator[list[str]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
