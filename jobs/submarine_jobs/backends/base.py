"""Interface of a backend: plan a spec, start one program per intent, observe and stop jobs.

The job directory is created by ``submit``, and records are built by ``tracking``. A backend keeps
no state in memory that would be lost at a restart of the client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from submarine_jobs.backends.overview import Overview
from submarine_jobs.config import load_backend
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, PackedEnvironment, Profile, hadoop_user, parse_duration
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import AgentConfig, CoordinatorConfig, EndReason
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.inputs import FreeDisk

#: Identifies a job in its backend; stored in ``application.json`` as plain JSON.
Handle = Mapping[str, Any]
SUBMIT_GRACE = 180.0
#: Job id -> handle.
Handles = Mapping[str, Handle]


@dataclass(frozen=True)
class Plan:
    """The containers of a spec and the findings, for ``--dry-run`` and for the record.

    Parameters
    ----------
    placement
        One sentence: in which container the program runs, and why.
    containers
        One entry per kind of container: ``what`` (purpose), ``role`` (None for the master),
        ``count`` (default 1), ``memory`` (total MiB), ``vcores``, ``gpus``.
    overhead
        MiB per container that are added for master and agent.
    warnings, errors
        One sentence each; with errors, a submission is refused.
    """

    placement: str
    containers: Sequence[Mapping[str, Any]]
    overhead: int = 0
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """A job whose directory is complete; all paths are in ``storage``.

    Parameters
    ----------
    agent
        Configuration of the agents of the first role; ``of_role`` makes those of other roles.
    coordinator
        Configuration of the coordinator of a distributed job, else None.
    environments
        Role -> its packed Python environment, if it has one.
    on_step
        Called with each step, in words.
    data_zip
        The zip of ``submarine_data`` for the containers of the program; None: it is not used.
    """

    spec: JobSpec
    plan: Plan
    storage: Storage
    job_dir: str
    agent: AgentConfig
    runtime_zip: str
    coordinator: CoordinatorConfig | None = None
    environments: Mapping[str, PackedEnvironment] = field(default_factory=dict)
    on_step: Callable[[str], None] = lambda step: None
    data_zip: str | None = None


@dataclass(frozen=True)
class FreshTokens:
    """Credentials that a client delivers to its running jobs; see ``wire.TOKENS``."""

    text: str = field(repr=False)


class Stage(str, Enum):  # noqa: UP042 - as the protocol's states, the value is the word
    """State of a job according to the backend; coarser than ``State``.

    ``STARTING``: the only container was allocated, and the node localizes its files.
    """

    UNKNOWN = "unknown"
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True)
class Observation:
    """The observation of one job by its backend.

    ``UNKNOWN`` means that the backend answered and has no such job (a backend that does not answer
    raises ClusterError). ``reason`` is the end reason *if the job has published no record*, and
    ``detail`` its sentence, with the message of the cluster where useful. ``pending`` explains a
    wait. ``started`` is the launch time of the first container. ``master_runs``: a process of the
    job runs, although containers may be missing.
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
        """Whether the job waits or runs according to the backend."""
        return self.stage in (Stage.WAITING, Stage.STARTING, Stage.RUNNING)


def submit_grace(profile: Profile) -> float:
    """Return the setting ``submit_grace`` in seconds."""
    value = profile.settings.get("submit_grace")
    return parse_duration(value) if value else SUBMIT_GRACE


class Backend(ABC):
    """Base class of backends; the constructor takes the profile.

    Attributes
    ----------
    name
        The name of the entry point in the group ``submarine.backends``. Jobs store it.
    settings
        Settings of a profile that only this backend reads, each with one line of help. Those of
        this package's backends are in ``KNOWN_SETTINGS``.
    shares
        Whether jobs may have ``--share``: the job root is on a file system with ACLs, and ``plan``
        reports what the cluster does not protect.
    profile
        The cluster and its settings.
    submit_grace
        Seconds since the last publication of a job's intent after which a job that the backend
        does not know counts as never submitted.
    """

    name: ClassVar[str]
    settings: ClassVar[Mapping[str, str]] = {}
    shares: ClassVar[bool] = False
    submit_grace: float = SUBMIT_GRACE

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.submit_grace = submit_grace(profile)

    @property
    def user(self) -> str:
        """The user of this process on the cluster."""
        return hadoop_user(self.profile.user)

    @abstractmethod
    def job_root(self) -> tuple[Storage, str]:
        """Return storage and path of the directory of this user's jobs."""

    def job_root_of(self, user: str) -> tuple[Storage, str]:
        """Return storage and path of the directory of another user's jobs.

        Raises
        ------
        UsageError
            If this backend has only jobs of this user.
        """
        raise UsageError(
            _("--backend {name} has no jobs of other users.").format(name=self.name),
            _("Choose the backend of the cluster."),
        )

    def jobs_of(self, user: str) -> Collection[str]:
        """Return the ids of another user's jobs that this user may view, as far as known.

        Raises
        ------
        UsageError
            If this backend has only jobs of this user.
        """
        self.job_root_of(user)
        return ()

    @abstractmethod
    def plan(self, spec: JobSpec) -> Plan:
        """Check ``spec`` against the live cluster, without any change.

        Raises ClusterError if the cluster does not answer within the timeout.
        """

    @abstractmethod
    def prepare(self, spec: JobSpec | None = None) -> None:
        """Prepare a submission (of ``spec``) in the background; return immediately."""

    @abstractmethod
    def submit(self, submission: Submission) -> Handle:
        """Start the job and return once the cluster has accepted it.

        May be called again for the same intent: an existing job is found, not started twice.
        Raises RefusedError if the cluster refuses the job, ClusterError if it does not answer.
        """

    @abstractmethod
    def find(self, job_id: str) -> Handle | None:
        """Return the handle of a job without ``application.json``, by its tag; None if none."""

    @abstractmethod
    def observe(self, handles: Handles) -> dict[str, Observation]:
        """Observe jobs (id -> handle) with one call to the cluster, independent of their number.

        When the end of a job that has a record is observed, the backend removes the processes and
        the files that it made for the job outside of the job directory.
        """

    def survey(self, handles: Handles, explain: Collection[str] = ()) -> dict[str, Observation]:
        """Observe jobs as ``observe`` does, for periodic polls of all jobs of this user.

        Parameters
        ----------
        explain
            Displayed jobs, for which further requests may be made to explain a wait.
        """
        return self.observe(handles)

    def localizing(self, handle: Handle) -> tuple[str, float | None]:
        """Return a sentence on the localization of files in progress, and its start time.

        Called for a job that has all its containers and whose agent has not reported yet.
        Raises ClusterError if the cluster does not answer within the timeout.
        """
        return "", None

    def active_jobs(self) -> Collection[str] | None:
        """Return the ids of all unfinished jobs; None if the backend does not have them all.

        Raises ClusterError if the cluster does not answer within the timeout.
        """
        return None

    def fresh_tokens(self) -> FreshTokens | None:
        """Return fresh credentials for running jobs; None if jobs on this backend need none.

        Raises ClusterError if they cannot be obtained.
        """
        return None

    def keep_credentials(self) -> None:  # noqa: B027 - a backend may have none
        """Renew the user's own credentials while this process runs, where that is possible."""

    @property
    def token_interval(self) -> float:
        """Seconds between two deliveries of ``fresh_tokens`` to a job; 0: none."""
        return 0.0

    def overview(self) -> Overview:
        """Return queues and nodes and their use; empty if the backend has none.

        Raises ClusterError if the cluster does not answer within the timeout.
        """
        return Overview()

    def other_file_system(self, uri: str) -> tuple[Storage, str] | None:
        """Return the file system of a URI outside of the job root's, and the path in it.

        Agents of the job must read it as ``Storage.job_store`` describes. None: they cannot.

        Raises
        ------
        UsageError
            If the cluster has the file system, and its jobs may not read it.
        """
        return None

    def free_disk(self) -> FreeDisk | None:
        """Return the node with the least free disk; None if the cluster does not report it."""
        return None

    @abstractmethod
    def stop(self, handle: Handle) -> None:
        """Stop the job without its agent; no error if it has ended."""


def make_backend(name: str, profile: Profile) -> Backend:
    """Return the backend that is installed as ``name``, for one profile.

    Raises
    ------
    UsageError
        If none of that name is installed, or its class is not a complete backend.
    """
    kind = load_backend(name)
    where = f"{getattr(kind, '__module__', '')}:{getattr(kind, '__qualname__', kind)}"
    if not isinstance(kind, type) or not issubclass(kind, Backend):
        raise UsageError(
            _(
                "The backend {name} cannot be used: {where} is not a subclass of "
                "submarine_jobs.backends.Backend."
            ).format(name=name, where=where)
        )
    missing = [*sorted(kind.__abstractmethods__), *(() if hasattr(kind, "name") else ("name",))]
    if missing:
        raise UsageError(
            _("The backend {name} is incomplete: {where} does not define {missing}.").format(
                name=name, where=where, missing=", ".join(missing)
            ),
            _("Its package must define it, as submarine_jobs.backends.Backend describes."),
        )
    if kind.name != name:
        raise UsageError(
            _(
                "The backend {name} cannot be used: the attribute name of {where} is "
                "{attribute!r}, which must be the name of its entry point."
            ).format(name=name, where=where, attribute=kind.name)
        )
    return kind(profile)
