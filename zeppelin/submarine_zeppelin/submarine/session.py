"""A submit in a paragraph: the same job once while it is under way, whoever asks again.

Zeppelin asks again for what it believes to have failed, and so do people. How a job is submitted is
``submarine_jobs.client.session``'s.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import Job, Session
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobSpec, fill_spec, with_extra_roles
from submarine_jobs.program import Bundle
from submarine_zeppelin.interface import Place
from submarine_zeppelin.submarine.job_index import ORIGIN, KnownJobs

if TYPE_CHECKING:
    from submarine_zeppelin.submarine.frontend import ZeppelinFrontend

_lock = threading.Lock()
_submitting: dict[Place, threading.Lock] = {}


class ParagraphSession(Session):
    """A session in which one paragraph submits the same job once while that is under way."""

    def __init__(self, shared: Session, frontend: ZeppelinFrontend) -> None:
        super().__init__(shared.profile)
        self.store = shared.store
        self._backends = shared._backends
        self.__dict__["watcher"] = shared.watcher
        self._frontend = frontend

    @property
    def notebook(self) -> tuple[str, ...]:
        """The note."""
        return (f"{ORIGIN}{self._frontend.context.note_id}",)

    def submit(self, spec: JobSpec, bundle: Bundle | None, *rest: Any, **more: Any) -> Job:
        """As ``Session.submit``, unless this paragraph has the same job running."""
        place = self._frontend.context.place
        with _lock:
            turn = _submitting.setdefault(place, threading.Lock())
        with turn:
            known = KnownJobs.of(self.profile)
            found = self._running(spec, known)
            if found is not None:
                self._frontend.say(
                    f"{found.id} of this paragraph is the same and has not ended: it is shown, and "
                    "nothing was submitted. Cancel it first to start anew."
                )
                self._frontend.page.started = True
                return found
            self._frontend.submitting = (self, set(known.going_on(self.store, place)))
            job = super().submit(spec, bundle, *rest, **more)
            self._frontend.submitting = None
            self._frontend.page.started = True
            known.put(self._frontend.placed(job))
            return job

    def _running(self, spec: JobSpec, known: KnownJobs) -> Job | None:
        wanted = fill_spec(with_extra_roles(spec)).to_bytes()
        for job_id in known.going_on(self.store, self._frontend.context.place):
            try:
                job = self.job(job_id)
                if job.directory.spec().to_bytes() == wanted and not job.record().state.ended:
                    return job
            except (SubmarineError, OSError, ValueError, KeyError):
                continue
        return None
