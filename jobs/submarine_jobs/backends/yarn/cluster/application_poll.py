"""All jobs of one user, looked at again and again: two questions a look, whatever their number.

The first is for the applications that go on; the second for the scheduler or, in its place, for
what is needed more just then: what has become of applications that are no longer among them, and
the nodes while jobs that wait are on display. Where it matters who else is there, the first is for
everybody's applications now and then. The judgement of one application is ``observe``'s; when to
look is not decided here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from submarine_jobs.backends.base import Handle, Observation, Stage
from submarine_jobs.backends.yarn.cluster.applications import (
    application,
    explained,
    is_ours,
    listed_applications,
    observation,
)
from submarine_jobs.backends.yarn.cluster.cache import APPS, FRESH, GOING_ON, NODES, SCHEDULER
from submarine_jobs.backends.yarn.cluster.pending_reasons import Waits, needs_of
from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_jobs.backends.yarn.cluster.tags import TAG, tag_of
from submarine_runtime.yarn import ContainerRequest

#: So many tags go into one question.
_TAGS = 100
#: Seconds for which an application that the ResourceManager does not know is not asked for again.
_FORGOTTEN = 300.0
App = Mapping[str, Any]


class Survey:
    """Looks at the jobs of one user on one cluster.

    Parameters
    ----------
    waits
        Explains waits; its ``answers`` are given what each look is told of the cluster.
    """

    def __init__(self, rm: ResourceManager, waits: Waits, user: str) -> None:
        self._rm, self._waits, self._answers, self._user = rm, waits, waits.answers, user
        #: Applications that nobody knows -> when that was said.
        self._forgotten: dict[str, float] = {}
        #: Those that go on and are not found by their tag: only a list of all holds them.
        self._untagged: set[str] = set()
        #: Those that had all their containers, and what others still asked for, as last seen.
        self._placed: frozenset[str] = frozenset()
        self._needs: dict[str, Sequence[ContainerRequest]] = {}
        self._passed_over = False

    def look(
        self, handles: Mapping[str, Handle], explain: Collection[str] = ()
    ) -> dict[str, Observation]:
        """See ``Backend.survey``.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        wanted = {
            job_id: (str(handle["application_id"]), handle)
            for job_id, handle in handles.items()
            if handle.get("application_id")
        }
        if not wanted:
            self._answers.renew(SCHEDULER)
            return {}
        self._untagged &= {identity for identity, _ in wanted.values()}
        shown = {wanted[job_id][0] for job_id in explain if job_id in wanted} - self._placed
        going_on = self._going_on(shown)
        apps = {str(app.get("id")): app for app in going_on}
        apps.update(self._ask_more(wanted, apps, waits=bool(shown)))
        found: dict[str, Observation] = {}
        for job_id, (identity, handle) in wanted.items():
            app = apps.get(identity)
            if app is None:
                found[job_id] = Observation(Stage.UNKNOWN, handle=handle)
            else:
                found[job_id] = observation(self._rm, app, handle)
        self._placed = frozenset(
            wanted[job_id][0]
            for job_id, seen in found.items()
            if seen.stage in (Stage.STARTING, Stage.RUNNING)
        )
        waiting = {job_id: apps[wanted[job_id][0]] for job_id in explain if _waits(found, job_id)}
        if not waiting:
            return found
        reasons = self._waits.judged(list(waiting.values()), self._needs, self._all(going_on))
        return {**found, **explained(found, waiting, reasons)}

    def _going_on(self, shown: Set[str]) -> Sequence[App]:
        """The first question: the user's applications that go on, or everybody's.

        Parameters
        ----------
        shown
            Applications that may wait and are on display.
        """
        everybody = bool(shown) or self._answers.looked_at
        # First what those that wait ask for: everybody's requests would be too long.
        everybody = everybody and self._needs.keys() >= shown and self._answers.age(APPS) >= FRESH
        if everybody or self._untagged:
            return listed_applications(self._answers.renew(APPS))
        own = listed_applications(
            self._rm.get(
                "/apps",
                applicationTypes="skein",
                applicationTags=TAG,
                states=GOING_ON,
                user=self._user,
                deSelects="timeouts" if shown else "resourceRequests",
            )
        )
        asked_for = {str(app.get("id")): needs_of(app) for app in own if shown}
        self._needs = {identity: asked_for.get(identity, ()) for identity in shown}
        return own

    def _ask_more(
        self, wanted: Mapping[str, tuple[str, Handle]], apps: Mapping[str, App], *, waits: bool
    ) -> dict[str, App]:
        """The second question; returns the applications that it was for, if it was."""
        now = time.monotonic()
        self._forgotten = {
            identity: said for identity, said in self._forgotten.items() if now - said < _FORGOTTEN
        }
        missing = {
            job_id: identity
            for job_id, (identity, _) in wanted.items()
            if identity not in apps and identity not in self._forgotten
        }
        nodes = waits and self._answers.age(NODES) >= FRESH and not self._passed_over
        # Once, and then it is the scheduler's turn again.
        pass_over = self._answers.last(SCHEDULER) is not None and not self._passed_over
        self._passed_over = pass_over and (bool(missing) or nodes)
        if not self._passed_over:
            self._answers.renew(SCHEDULER)
        elif not missing:
            self._answers.renew(NODES)
        return self._ended(missing)

    def _ended(self, missing: Mapping[str, str]) -> dict[str, App]:
        """The applications of jobs (id -> application) that go on no more, asked for by tag."""
        apps: dict[str, App] = {}
        for some in _batches(missing, _TAGS):
            answer = self._rm.get(
                "/apps",
                applicationTypes="skein",
                applicationTags=",".join(tag_of(job_id) for job_id in some),
                deSelects="resourceRequests",
            )
            apps.update((str(app.get("id")), app) for app in listed_applications(answer))
        for identity in missing.values():
            if identity in apps:
                continue
            app = application(self._rm, identity)  # a tag may get lost
            if app is None:
                self._forgotten[identity] = time.monotonic()
                continue
            apps[identity] = app
            if str(app.get("state")) in GOING_ON.split(","):
                self._untagged.add(identity)
        return apps

    def _all(self, going_on: Sequence[App]) -> list[App]:
        """Everybody's applications as last heard, with the user's own as they are now."""
        now = {str(app.get("id")): app for app in going_on}
        others = {
            str(app.get("id")): app
            for app in listed_applications(self._answers.last(APPS))
            if app.get("user") != self._user or not is_ours(app)
        }
        return list({**others, **now}.values())


def _waits(found: Mapping[str, Observation], job_id: str) -> bool:
    return job_id in found and found[job_id].stage is Stage.WAITING


def _batches(words: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(words)
    while batch := list(islice(left, size)):
        yield batch
