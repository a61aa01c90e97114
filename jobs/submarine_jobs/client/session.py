"""The session: one profile, its backends and the job index. Backends are loaded on first use."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submarine_jobs import backends, client, datasets, storage, trained_models
from submarine_jobs.client import started_jobs as started
from submarine_jobs.errors import ClusterError, ConfigError, NoClusterError, no_cluster
from submarine_jobs.model import Profile, hadoop_user
from submarine_jobs.tracking import JobStore

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory
    from submarine_jobs.backends import Backend, Plan
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.token_deliveries import TokenDeliveries
    from submarine_jobs.client.watcher import Watcher
    from submarine_jobs.datasets import Dataset, DatasetStore
    from submarine_jobs.environments import Progress
    from submarine_jobs.model import JobSpec
    from submarine_jobs.program import Bundle
    from submarine_runtime.protocol import JobRecord


class Session:
    """The entry point for submitting, finding and watching jobs.

    Parameters
    ----------
    profile
        The cluster and its settings.

    Attributes
    ----------
    view_interval
        Minimum number of seconds between two views of a displayed job; None: the default. Set it
        before the first job is displayed.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.view_interval: float | None = None
        self.store = JobStore(profile.state_dir / "jobs.sqlite")
        self._backends: dict[str, Backend] = {}

    def backend(self, name: str | None = None) -> Backend:
        """Return the backend of that name, by default that of the profile.

        Raises
        ------
        NoClusterError
            If none is named or configured; the message lists the options.
        UsageError
            If no backend of that name is installed, or its class is incomplete.
        """
        name = name or self.profile.backend
        if name is None:
            raise no_cluster()
        if name not in self._backends:
            self._backends[name] = backends.make_backend(name, self.profile)
        return self._backends[name]

    def datasets(self, backend: str | None = None) -> DatasetStore:
        """Return the named datasets in the job root of a backend, by default the profile's.

        Raises
        ------
        UsageError
            If the job root is in an encryption zone, which agents cannot read.
        """
        found = self.backend(backend)
        file_system, root = found.job_root()
        storage.check_job_root(file_system, root)
        # The attribute loads the modules of uploads, which only data needs.
        return datasets.DatasetStore(file_system, root, found.user)

    def put_data(
        self, name: str | None, value: object, *, replaces: bool = False, backend: str | None = None
    ) -> Dataset:
        """Store data in the job root; see ``datasets.put_value``."""
        return datasets.put_value(self.datasets(backend), name, value, replaces=replaces).dataset

    @property
    def user(self) -> str:
        """The user of this process on the profile's cluster; without a cluster, as in Hadoop."""
        try:
            return self.backend().user
        except (ConfigError, NoClusterError):
            return hadoop_user(self.profile.user)

    @property
    def notebook(self) -> tuple[str, ...]:
        """Names of the notebook of this session; empty if there is none."""
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
        """Submit a job; see ``submarine_jobs.submit``."""
        # cost: the modules of a submission.
        from submarine_jobs.submit import submit

        data = bundle.zip_bytes() if bundle else None
        with started.submitting():
            job = submit(self, spec, data, values, plan, progress, claim)
        self.token_deliveries.keep(job.id, time.time(), job)
        return job

    def begin_job(self, job_id: str, name: str, backend: Backend, directory: JobDirectory) -> Job:
        """Return the object of a job that is about to be submitted, and list it as started."""
        # cost: 25 modules; a server that starts kernels loads them with the first kernel.
        from submarine_jobs.client.job import Job

        job = Job(self, job_id, name, backend, directory, None)
        started.job_started(job)
        return job

    def refuse_job(self, job_id: str) -> None:
        """Remove a job that its backend has refused from the list of started jobs."""
        started.job_refused(job_id)

    def jobs(
        self, limit: int = 100, on_trouble: Callable[[ClusterError], None] | None = None
    ) -> list[JobRecord]:
        """Return the records of this user's jobs, newest first, with one call to each backend.

        ``on_trouble`` receives errors; jobs may then be missing or shown in their last known state.
        """
        # cost: as in `begin_job`.
        from submarine_jobs.client.listing import list_jobs

        return list_jobs(self, limit, on_trouble)

    def jobs_of(self, user: str, limit: int = 100) -> list[JobRecord]:
        """Return the records of another user's jobs that are shared with this one, newest first."""
        # cost: as in `begin_job`.
        from submarine_jobs.client.listing import list_jobs_of

        return list_jobs_of(self, user, limit)

    def job(self, text: str) -> Job:
        """Find a job by id, unique prefix of an id, name (the newest), ``USER/ID`` or ``last``.

        ``last`` is the newest job of this user on this machine; in a notebook, of this notebook.
        """
        # cost: as in `begin_job`.
        from submarine_jobs.client.listing import find_job

        return find_job(self, text)

    def download_published(
        self, uri: str, target: str | Path, *, alias: str = "", backend: str | None = None
    ) -> dict[str, Any]:
        """Copy a published model to this machine; see ``trained_models.download_published``.

        ``backend`` names the backend whose file system has it; None: that of the profile.
        """
        storage, _root = self.backend(backend).job_root()
        return trained_models.download_published(storage, uri, target, alias=alias)

    @functools.cached_property
    def watcher(self) -> Watcher:
        """The watcher of displayed jobs, with its background thread."""
        # cost: asyncio, which only a displayed job needs.
        from submarine_jobs.client.watcher import Watcher

        return Watcher(self, interval=self.view_interval)

    @functools.cached_property
    def token_deliveries(self) -> TokenDeliveries:
        """The deliveries of fresh credentials to running jobs, with their background thread."""
        # The attribute loads the clients of ports, which `list` does not need.
        return client.TokenDeliveries(self)

    def describe(self) -> Mapping[str, Any]:
        """Return the names of profile and backend, for messages."""
        return {"profile": self.profile.name, "backend": self.profile.backend}
