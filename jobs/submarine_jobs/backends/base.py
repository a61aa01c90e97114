"""What a backend must do: judge a spec, start one program per intent, observe, stop.

Does not prepare the job directory (``submit``), follow logs (``live``, ``logs``) or decide what a
record says (``observe``). A backend keeps no state of its own in memory that a restart would miss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from submarine_jobs.backends.overview import Overview
from submarine_jobs.model import JobSpec, Profile, parse_duration
from submarine_jobs.storage import Storage
from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.reasons import EndReason

#: What a backend calls a job, as stored in ``application.json``; plain JSON.
Handle = Mapping[str, Any]
SUBMIT_GRACE = 180.0
#: Job id -> handle.
Handles = Mapping[str, Handle]


@dataclass(frozen=True)
class Plan:
    """How a spec would be placed, for ``--dry-run`` and for the record.

    Parameters
    ----------
    placement
        One sentence: ``in the application master's container`` and why.
    containers
        One entry a kind of container: ``what`` it is for, ``role`` (None for the master), ``count``
        (1 where absent), ``memory`` (MiB, all in), ``vcores``, ``gpus``.
    overhead
        MiB added to the program's memory for master and agent, by container.
    warnings, errors
        One sentence each; errors mean that a submit would be refused.
    """

    placement: str
    containers: Sequence[Mapping[str, Any]]
    overhead: int = 0
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """A job whose directory is complete up to its intent; all paths lie in ``storage``.

    Parameters
    ----------
    agent
        Orders of the only task's agent; of a distributed job: of its first role's.
    coordinator, agents
        Of a distributed job: the coordinator's orders, the agents' by role; else None and empty.
    environments
        Role -> URL of the archive that is its Python environment, where one is brought along.
    on_step
        Told in words what is done with it at the moment.
    """

    spec: JobSpec
    plan: Plan
    storage: Storage
    job_dir: str
    agent: AgentConfig
    runtime_zip: str
    coordinator: CoordinatorConfig | None = None
    agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    environments: Mapping[str, str] = field(default_factory=dict)
    on_step: Callable[[str], None] = lambda step: None


class Stage(str, Enum):  # noqa: UP042 - as the protocol's states, the value is the word
    """How far the backend sees a job; coarser than a state.

    ``STARTING``: its only container was granted, and the node brings the files there (localizes).
    """

    UNKNOWN = "unknown"
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True)
class Observation:
    """What the backend says of one job.

    ``UNKNOWN`` means that the backend answered and does not know the job (a backend that does not
    answer raises ClusterError). ``reason`` is the backend's judgement of an ended job *for the
    case that the job itself left no record*; ``detail`` is its sentence, in the cluster's words
    where useful. ``pending`` explains a wait. ``started``: when the first container was launched.
    ``master_runs``: a process of the job runs, though containers may be missing.
    """

    stage: Stage
    reason: EndReason | None = None
    detail: str = ""
    pending: str = ""
    handle: Handle | None = None
    started: float | None = None
    finished: float | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, Any] = field(default_factory=dict)
    host: str | None = None
    container_id: str | None = None
    master_runs: bool = False

    @property
    def active(self) -> bool:
        """Whether the backend says that the job waits or runs."""
        return self.stage in (Stage.WAITING, Stage.STARTING, Stage.RUNNING)


def submit_grace(profile: Profile) -> float:
    """Seconds of the setting ``submit_grace``."""
    said = profile.settings.get("submit_grace")
    return parse_duration(said) if said else SUBMIT_GRACE


class Backend(ABC):
    """A place where jobs run.

    Attributes
    ----------
    submit_grace
        Seconds since the last publication of a job's intent after which a job that the backend
        does not know counts as never submitted.
    """

    name: str
    submit_grace: float = SUBMIT_GRACE

    @abstractmethod
    def job_root(self) -> tuple[Storage, str]:
        """Storage and path under which this user's job directories lie."""

    @abstractmethod
    def plan(self, spec: JobSpec) -> Plan:
        """Judge ``spec`` against the live cluster without changing anything.

        Raises ClusterError when the cluster cannot be asked within the timeout.
        """

    @abstractmethod
    def prepare(self, spec: JobSpec | None = None) -> None:
        """Start what a submit (of ``spec``) will need in the background; returns at once."""

    @abstractmethod
    def submit(self, submission: Submission) -> Handle:
        """Start the job and return once the cluster has accepted it.

        Safe to call again for the same intent: a job that is already there is found, not started
        twice. Raises RefusedError when the cluster says no, ClusterError when it cannot be asked.
        """

    @abstractmethod
    def find(self, job_id: str) -> Handle | None:
        """The handle of a job whose ``application.json`` is missing, by its tag; None if none."""

    @abstractmethod
    def observe(self, handles: Handles) -> dict[str, Observation]:
        """Look at many jobs (id -> handle) with one call to the cluster, whatever their number."""

    def survey(self, handles: Handles, explain: Collection[str] = ()) -> dict[str, Observation]:
        """As ``observe``, for one who looks at all jobs of this user again and again.

        Parameters
        ----------
        explain
            Jobs of which it is worth more questions why they wait: those on display.
        """
        return self.observe(handles)

    def localizing(self, handle: Handle) -> tuple[str, float | None]:
        """Where files are brought to containers that were granted, and since when.

        Called for a job that has all its containers and whose agent has not said anything yet.
        Raises ClusterError when the cluster cannot be asked within the timeout.
        """
        return "", None

    def active_jobs(self) -> Collection[str] | None:
        """Ids of all jobs that have not ended; None where the backend does not know them all.

        Raises ClusterError when the cluster cannot be asked within the timeout.
        """
        return None

    def overview(self) -> Overview:
        """Queues and nodes, and what of them is in use; empty where a backend has none.

        Raises ClusterError when the cluster cannot be asked within the timeout.
        """
        return Overview()

    @abstractmethod
    def stop(self, handle: Handle) -> None:
        """End the job from outside, without its agent's help; no error when it has ended."""
