"""The core's front door: one profile, its backends, the job store; cheap until something is used.

Does not parse options (``commands``), does not display and holds no job alive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import started_jobs as started
from submarine_jobs.errors import ClusterError, UsageError, no_cluster
from submarine_jobs.model import Profile
from submarine_jobs.tracking import JobStore

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory
    from submarine_jobs.backends import Backend, Plan
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.watcher import Watcher
    from submarine_jobs.environments import Progress
    from submarine_jobs.model import JobSpec
    from submarine_jobs.program import Bundle
    from submarine_runtime.protocol.record import JobRecord

BACKENDS = ("yarn", "local")


class Session:
    """Everything that one process needs to submit and watch jobs.

    Parameters
    ----------
    profile
        The cluster to use and how.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.store = JobStore(profile.state_dir / "jobs.sqlite")
        self._backends: dict[str, Backend] = {}

    def backend(self, name: str | None = None) -> Backend:
        """The backend of that name, by default the profile's.

        Raises
        ------
        NoClusterError
            If none is configured and none is named; the message has the ways on.
        """
        name = name or self.profile.backend
        if name is None:
            raise no_cluster()
        if name not in self._backends:
            self._backends[name] = _make_backend(name, self.profile)
        return self._backends[name]

    @property
    def notebook(self) -> tuple[str, ...]:
        """Names of the notebook that this session submits for; empty: it is no notebook's."""
        return started.notebook()

    def submit(
        self,
        spec: JobSpec,
        bundle: Bundle | None,
        values: bytes | None = None,
        plan: Plan | None = None,
        progress: Progress | None = None,
        claim: Callable[[str], bool] | None = None,
    ) -> Job:
        """Submit a job; see ``submarine_jobs.submit.submission``."""
        from submarine_jobs.submit import submit

        data = bundle.zip_bytes() if bundle else None
        with started.submitting():
            return submit(self, spec, data, values, plan, progress, claim)

    def begin_job(self, job_id: str, name: str, backend: Backend, directory: JobDirectory) -> Job:
        """Return the object of a job that is about to be handed over, and list it as started."""
        from submarine_jobs.client.job import Job

        job = Job(self, job_id, name, backend, directory, None)
        started.job_started(job)
        return job

    def refuse_job(self, job_id: str) -> None:
        """Remove a job that its backend did not take from the list of started jobs."""
        started.job_refused(job_id)

    def jobs(
        self, limit: int = 100, on_trouble: Callable[[ClusterError], None] | None = None
    ) -> list[JobRecord]:
        """Records of this user's jobs, newest first, looked up with one call to each backend.

        ``on_trouble`` is told why jobs may be missing, or be shown as they last were.
        """
        from submarine_jobs.client.listing import list_jobs

        return list_jobs(self, limit, on_trouble)

    def job(self, text: str) -> Job:
        """Find a job: by full id, unique beginning of one, name (the newest), or ``last``.

        ``last`` is the newest job of this user on this machine; in a notebook, of that notebook.
        """
        from submarine_jobs.client.listing import find_job

        return find_job(self, text)

    @functools.cached_property
    def watcher(self) -> Watcher:
        """The one background thread that follows jobs on display."""
        from submarine_jobs.client.watcher import Watcher

        return Watcher(self)

    def describe(self) -> Mapping[str, Any]:
        """Profile and backend in a few words, for messages."""
        return {"profile": self.profile.name, "backend": self.profile.backend}


def _make_backend(name: str, profile: Profile) -> Backend:
    if name == "local":
        from submarine_jobs.backends.local import LocalBackend

        return LocalBackend(profile)
    if name == "yarn":
        from submarine_jobs.backends.yarn import YarnBackend

        return YarnBackend(profile)
    raise UsageError(f"There is no backend {name!r}.", f"Choose one of {', '.join(BACKENDS)}.")
