"""Interface of a job for packages below ``client``, which implements it as ``Job``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from submarine_jobs.access.agent_client import AgentClient
from submarine_jobs.access.job_directory import JobDirectory
from submarine_runtime.protocol import JobRecord


class KnownJob(Protocol):
    """Interface of ``tracking.IndexEntry``."""

    @property
    def record(self) -> JobRecord | None:
        """The last known record."""

    @property
    def final(self) -> bool:
        """Whether the record is final."""


class JobHandle(Protocol):
    """Interface of ``client.Job`` for logs, outputs, leases and the list of started jobs."""

    id: str
    name: str
    directory: JobDirectory

    @property
    def chief(self) -> str:
        """The task whose log is the default."""

    @property
    def distributed(self) -> bool:
        """Whether the job may have more than one task or attempt."""

    def index_entry(self) -> KnownJob | None:
        """Return the entry of the job in the index of this machine."""

    @property
    def result(self) -> Mapping[str, Any]:
        """Values of ``--return``."""

    def record(self) -> JobRecord:
        """Return the current record from the agent, the job directory or the cluster."""

    def agent(self) -> AgentClient | None:
        """Return a client of the job's port, or None if nothing listens there."""

    def cancel(self, why: str = "") -> JobRecord:
        """Cancel the job; its outputs are kept."""

    def attempts(self, task: str | None = None) -> list[str]:
        """Return the attempts of a task that have a log, oldest first."""
