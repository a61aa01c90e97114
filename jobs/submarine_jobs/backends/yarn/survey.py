"""All jobs of one user, looked at again and again: two questions a look, whatever their number.

Asks for the applications that go on and for the scheduler; what is missing among them has ended and
is asked for once, by tag. The judgement of one application is ``observe``'s; when to look is not
decided here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from submarine_jobs.backends.base import Handle, Observation, Stage
from submarine_jobs.backends.yarn.application import TAG, tag_of
from submarine_jobs.backends.yarn.observe import (
    application,
    explained,
    listed_applications,
    observation,
)
from submarine_jobs.backends.yarn.rm import ResourceManager
from submarine_jobs.backends.yarn.waiting import Waits

_GOING_ON = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
#: So many tags go into one question.
_TAGS = 40
#: Seconds for which an application that the ResourceManager does not know is not asked for again.
_FORGOTTEN = 300.0


class Survey:
    """Looks at the jobs of one user on one cluster.

    Parameters
    ----------
    waits
        Explains waits; is given the scheduler's answer of each look.
    """

    def __init__(self, rm: ResourceManager, waits: Waits, user: str) -> None:
        self._rm, self._waits, self._user = rm, waits, user
        #: Applications that nobody knows -> when that was said.
        self._forgotten: dict[str, float] = {}

    def look(
        self, handles: Mapping[str, Handle], explain: Collection[str] = ()
    ) -> dict[str, Observation]:
        """See ``Backend.survey``.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        self._waits.take_scheduler(self._rm.get("/scheduler"))
        wanted = {
            job_id: (str(handle["application_id"]), handle)
            for job_id, handle in handles.items()
            if handle.get("application_id")
        }
        if not wanted:
            return {}
        apps = self._all({job_id: identity for job_id, (identity, _) in wanted.items()})
        found: dict[str, Observation] = {}
        for job_id, (identity, handle) in wanted.items():
            app = apps.get(identity)
            if app is None:
                found[job_id] = Observation(Stage.UNKNOWN, handle=handle)
            else:
                found[job_id] = observation(self._rm, app, handle)
        shown = {job_id: apps[wanted[job_id][0]] for job_id in explain if _waits(found, job_id)}
        return {**found, **explained(self._waits, found, shown)}

    def _all(self, wanted: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """The applications of these jobs (id -> application) that the cluster knows."""
        answer = self._rm.get(
            "/apps",
            applicationTypes="skein",
            applicationTags=TAG,
            states=_GOING_ON,
            user=self._user,
            deSelects="resourceRequests",
        )
        apps = {str(app.get("id")): app for app in listed_applications(answer)}
        self._forgotten = {
            identity: said
            for identity, said in self._forgotten.items()
            if time.monotonic() - said < _FORGOTTEN
        }
        missing = {
            job_id: identity
            for job_id, identity in wanted.items()
            if identity not in apps and identity not in self._forgotten
        }
        for some in _batches(missing, _TAGS):
            tags = ",".join(tag_of(job_id) for job_id in some)
            answer = self._rm.get(
                "/apps",
                applicationTypes="skein",
                applicationTags=tags,
                deSelects="resourceRequests",
            )
            apps.update((str(app.get("id")), app) for app in listed_applications(answer))
        for identity in missing.values():
            if identity in apps:
                continue
            app = application(self._rm, identity)  # a tag may get lost
            if app is None:
                self._forgotten[identity] = time.monotonic()
            else:
                apps[identity] = app
        return apps


def _waits(found: Mapping[str, Observation], job_id: str) -> bool:
    return job_id in found and found[job_id].stage is Stage.WAITING


def _batches(words: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(words)
    while batch := list(islice(left, size)):
        yield batch
