"""``agent.json`` and ``coordinator.json``: what agent and coordinator are told; no secrets in them.

The token, certificate and key lie in ``secret.json`` (mode 0600) in the same directory. Does not
describe what the *user's program* finds; that is ``submarine_runtime.frameworks``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol import PROTOCOL_VERSION
from submarine_runtime.protocol.record import known


@dataclass
class JobStore:
    """Where the job directory lies, as the container reaches it.

    Parameters
    ----------
    kind
        ``local`` (``path`` is a directory of this machine) or ``webhdfs``.
    path
        The job directory without scheme and host.
    webhdfs
        Base URLs of the NameNodes' WebHDFS (``http://host:port``), the first that is active is
        used; only for ``webhdfs``.
    user
        HDFS user for simple authentication.
    """

    kind: str
    path: str
    webhdfs: list[str] = field(default_factory=list)
    user: str | None = None


@dataclass
class Input:
    """Something to fetch before the program starts (``--input NAME=URI[:shard]``).

    Parameters
    ----------
    source
        Absolute path in the job store's file system, or a directory there.
    shard
        Share the files out over the tasks of the role instead of giving each all of them.
    """

    name: str
    source: str
    shard: bool = False


#: Variables by which a container of a distributed job learns who it is; the agent removes them
#: from the program's environment. Plain words and ``host:port`` only: skein quotes nothing.
TASK_VARIABLE = "SUBMARINE_AGENT_TASK"
SEAT_VARIABLE = "SUBMARINE_AGENT_SEAT"
COORDINATOR_VARIABLE = "SUBMARINE_AGENT_COORDINATOR"


@dataclass
class AgentConfig:
    """Everything that an agent needs to know.

    In a distributed job it is written once a role; ``index``, ``epoch`` and ``attempt`` then come
    from the environment and from the coordinator (``protocol.link``).

    Parameters
    ----------
    command
        None: run ``program`` with ``python``. Otherwise a shell command
        (``--worker_launch_cmd``), placeholders already filled in.
    python
        Absolute path of the interpreter that runs the program.
    memory
        MiB that the program may use; the agent ends it above ``memory`` + ``memory_slack``.
    timeout
        Seconds that the program may run; None for no limit.
    ship_interval, ship_bytes
        A log segment is published every so many seconds or bytes, whichever comes first.
    kill_grace
        Seconds between SIGTERM and SIGKILL.
    save_grace
        Seconds that outputs, logs and record may take to be saved while the job directory's file
        system is away.
    listen
        Address to bind for the live view: ``127.0.0.1`` for the local backend, else ``0.0.0.0``.
    inputs
        NAME -> value of ``SUBMARINE_INPUT_<NAME>``.
    phases
        Phases before the agent, as JSON of ``record.Phase``; one without an end (``queue``) ended
        when the agent's container began.
    fetch
        Inputs to bring to this container before the program starts. The first one's local path
        replaces each ``%input_path%`` that is left in ``command``, ``args`` and ``env``.
    checkpoint_path
        Path in the job store's file system that checkpoints are restored from and synced to; None:
        the job directory's own.
    sync_interval
        Seconds between two looks at the directories that are synced while the program runs.
    restore_from
        Job directory (path in the same store) whose newest checkpoint is put back before the first
        start: ``rerun --resume``.
    params
        ``--param``: NAME -> value (JSON), for ``params.json`` and ``SUBMARINE_PARAM_<NAME>``.
    processes
        Processes of the program in this container (``LOCAL_RANK``); 0: the framework decides.
    instances
        Tasks of this role that were asked for.
    network_interface
        What gloo and NCCL are told to use; None: the interface that leads to the coordinator.
    claim_gpus
        Claim devices by lock and set CUDA_VISIBLE_DEVICES, because the cluster isolates nothing;
        None: the agent finds out by what it sees.
    """

    job_id: str
    name: str
    user: str
    backend: str
    intent: str
    created: float
    store: JobStore
    job_dir: str
    role: str = "worker"
    index: int = 0
    epoch: int = 1
    attempt: int = 1
    program: str = "main.py"
    args: list[str] = field(default_factory=list)
    command: str | None = None
    python: str = "python3"
    env: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    framework: str = "any"
    memory: int | None = None
    memory_slack: int = 0
    vcores: int = 1
    gpus: int = 0
    timeout: float | None = None
    return_names: list[str] = field(default_factory=list)
    listen: str = "0.0.0.0"  # noqa: S104 - containers are watched from other hosts
    ship_interval: float = 10.0
    ship_bytes: int = 1 << 20
    kill_grace: float = 10.0
    save_grace: float = 300.0
    queue: str | None = None
    links: dict[str, str] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)
    fetch: list[Input] = field(default_factory=list)
    checkpoint_path: str | None = None
    sync_interval: float = 10.0
    restore_from: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    processes: int = 0
    instances: int = 1
    network_interface: str | None = None
    claim_gpus: bool | None = None
    version: int = PROTOCOL_VERSION

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgentConfig:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known(cls, data)
        values["store"] = JobStore(**known(JobStore, data["store"]))
        values["fetch"] = [Input(**known(Input, item)) for item in data.get("fetch") or []]
        return cls(**values)


@dataclass
class RoleOrders:
    """One role, as the coordinator places and judges it.

    Parameters
    ----------
    service
        skein's service (``yarn``), or the directory name of its orders (``local``).
    kind
        ``tracked`` (counts for the job's end), ``untracked`` (a parameter server: never keeps a job
        alive, but its loss is a fault) or ``sidecar`` (a TensorBoard: outside the gang, never keeps
        a job alive, its loss is no fault).
    least
        ``--min-workers``: so many instances are enough to start; None: all.
    after
        Roles whose tasks must have started their programs before this role's are started.
    spread
        Ask again (bounded) for a container on a node that has no task of this role yet.
    avoid
        Host names never to be used (bounded as well).
    label, nodes, racks
        Where its containers may be, for the sentence on why they are not there yet.
    """

    name: str
    service: str
    instances: int = 1
    kind: str = "tracked"
    least: int | None = None
    after: list[str] = field(default_factory=list)
    memory: int = 0
    vcores: int = 1
    gpus: int = 0
    spread: bool = False
    avoid: list[str] = field(default_factory=list)
    label: str | None = None
    nodes: list[str] = field(default_factory=list)
    racks: list[str] = field(default_factory=list)


#: ``--success``: who decides that the job has succeeded.
POLICIES = ("chief", "all", "any", "fraction")


@dataclass
class CoordinatorConfig:
    """Everything that the coordinator needs to know (``coordinator.json``).

    Parameters
    ----------
    policy
        ``chief`` (its end is the job's), ``all`` (every tracked task must succeed; the first
        failure that cannot be restarted ends the job), ``any`` (the first success ends it) or
        ``fraction`` (``allowed_failures`` of the tracked tasks, 0 to 1, may fail for good).
    max_restarts
        Faults of tasks that are made good, in place or with the gang; pre-emption and lost nodes do
        not count, nor does a permanent failure (an ImportError), which is never retried.
    restart_in_place
        Whether the framework lets one task be started again while the others go on.
    gang_timeout
        Seconds that the gang waits for containers before it releases those that it has; None: for
        ever.
    gang_retries
        How often it then tries again (jittered back-off) before the job fails; None: for ever.
    heartbeat, lost_after
        Seconds between heartbeats; seconds without one after which a task is lost.
    lost_margin
        Seconds on top before a replacement's program may start: the lost one's agent has ended its
        own by then.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface; empty for ``local``.
    listen_port
        0: any free one; a restarted coordinator takes its old one from the journal.
    application_attempts
        How often YARN may start the master (``max_attempts``).
    """

    job_id: str
    name: str
    user: str
    backend: str
    intent: str
    created: float
    store: JobStore
    job_dir: str
    roles: list[RoleOrders] = field(default_factory=list)
    framework: str = "any"
    policy: str = "chief"
    allowed_failures: float = 0.0
    max_restarts: int = 3
    restart_in_place: bool = False
    gang_timeout: float | None = 600.0
    gang_retries: int | None = 5
    heartbeat: float = 1.0
    lost_after: float = 25.0
    lost_margin: float = 2.0
    timeout: float | None = None
    kill_grace: float = 10.0
    save_grace: float = 300.0
    queue: str | None = None
    priority: int | None = None
    resourcemanagers: list[str] = field(default_factory=list)
    listen: str = "0.0.0.0"  # noqa: S104 - agents and viewers come from other hosts
    listen_port: int = 0
    application_attempts: int = 2
    links: dict[str, str] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)
    version: int = PROTOCOL_VERSION

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CoordinatorConfig:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known(cls, data)
        values["store"] = JobStore(**known(JobStore, data["store"]))
        values["roles"] = [RoleOrders(**known(RoleOrders, r)) for r in data.get("roles") or []]
        return cls(**values)
