"""Configuration of an agent (``agent.json``) and the variables that name its task; no secrets.

The token, certificate and key are in ``secret.json`` (mode 0600) in the same directory. The
environment of the *user's program* is described by ``submarine_runtime.frameworks``, the
configuration of the coordinator by ``coordination``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol import PROTOCOL_VERSION
from submarine_runtime.protocol.fields import known_fields

#: Exit code of an agent or coordinator that could not write claim or record because the job
#: directory is full; the exit code is the only way to report it to the cluster.
NO_SPACE_CODE = 73
#: The same if the job directory's file system was not available during the whole wait.
STORE_AWAY_CODE = 74
#: Prefix of the names under which YARN localizes directories of HDFS, in a container; they may hold
#: checksum files.
CHECKSUMMED = "hdfs-"


@dataclass
class JobStore:
    """Location of the job directory, as the container accesses it.

    Parameters
    ----------
    kind
        ``local`` (``path`` is a directory of this machine) or ``webhdfs``.
    path
        The job directory without scheme and host.
    webhdfs
        Base URLs of the NameNodes' WebHDFS (``http://host:port``); the first active one is used;
        only for ``webhdfs``.
    user
        HDFS user for simple authentication.
    """

    kind: str
    path: str
    webhdfs: list[str] = field(default_factory=list)
    user: str | None = None


@dataclass
class Input:
    """An input to fetch before the program starts (``--input NAME=URI[:shard]``).

    Parameters
    ----------
    source
        Absolute path in the job store's file system, or a directory there.
    shard
        Divide the files among the tasks that train, instead of all files for each task.
    roles
        With ``shard``: the roles whose tasks have a part; empty: see ``frameworks.sharing_tasks``.
    """

    name: str
    source: str
    shard: bool = False
    roles: list[str] = field(default_factory=list)


#: Variables that identify a container of a distributed job; the agent removes them from the
#: program's environment. Plain words and ``host:port`` only, because skein does not quote.
TASK_VARIABLE = "SUBMARINE_AGENT_TASK"
SEAT_VARIABLE = "SUBMARINE_AGENT_SEAT"
COORDINATOR_VARIABLE = "SUBMARINE_AGENT_COORDINATOR"


@dataclass
class AgentConfig:
    """Everything that an agent needs.

    In a distributed job there is one file for each role; ``index``, ``epoch`` and ``attempt`` come
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
    lease
        Seconds that a job of one task continues without a renewal by the client that started it;
        None: no limit.
    ship_interval, ship_bytes
        A log segment is published after this number of seconds or bytes, whichever comes first.
    kill_grace
        Seconds between SIGTERM and SIGKILL.
    save_grace
        Seconds that a task waits while the job directory's file system is not available: to claim
        the job, to fetch inputs and checkpoints, to save outputs, logs and record.
    listen
        Address to bind for the live view: ``127.0.0.1`` for the local backend, else ``0.0.0.0``.
    inputs
        NAME -> value of ``SUBMARINE_INPUT_<NAME>``.
    phases
        Phases before the agent, as JSON of ``record.Phase``; one without an end (``queue``) ended
        when the agent's container began.
    fetch
        Inputs to fetch to this container before the program starts. The first one's local path
        replaces each ``%input_path%`` that is left in ``command``, ``args`` and ``env``.
    checkpoint_path
        Path in the job store's file system from which checkpoints are restored and to which they
        are synced; None: the job directory's own.
    sync_interval
        Seconds between two scans of the directories that are synced while the program runs.
    restore_from
        Job directory (path in the same store) whose newest checkpoint is restored before the first
        start: ``rerun --resume``.
    params
        ``--param``: NAME -> value (JSON), for ``params.json`` and ``SUBMARINE_PARAM_<NAME>``.
    processes
        Processes of the program in this container (``LOCAL_RANK``); 0: the framework decides.
    roles
        Name, instances and kind of each requested role; empty: a single task.
    network_interface
        Interface for gloo and NCCL; None: the interface that leads to the coordinator.
    own_launcher
        A library of the program (Lightning, Accelerate, a trainer of transformers) starts one
        process for each device itself. A single task with one process then has no ranks in its
        environment, because those libraries interpret them as the work of another launcher.
    return_all_ranks
        Return the values of every rank, not only those of rank 0.
    keep
        Patterns of files in the working directory that are saved as outputs.
    writable
        Localised files and directories, relative to the working directory, of which the program
        gets a copy that it may change (``--localization SRC:TARGET:rw``).
    require_collective
        Fail a single task whose processes did not use the rendezvous; in a gang the coordinator
        decides this.
    workflow, workflow_run, workflow_node
        Origin of the job, for its record; empty: no workflow.
    notes
        Sentences for the record; see ``record.JobRecord``.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface, for a single task with localized
        archives: they report when its container was allocated.
    claim_gpus
        Claim devices by lock and set CUDA_VISIBLE_DEVICES, because the cluster does not isolate
        them; None: the agent decides by the devices that it sees.
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
    lease: float | None = None
    return_names: list[str] = field(default_factory=list)
    listen: str = "0.0.0.0"  # noqa: S104 - containers are watched from other hosts
    ship_interval: float = 10.0
    ship_bytes: int = 1 << 20
    kill_grace: float = 10.0
    save_grace: float = 600.0
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
    roles: list[dict[str, Any]] = field(default_factory=list)
    network_interface: str | None = None
    claim_gpus: bool | None = None
    own_launcher: bool = False
    require_collective: bool = False
    return_all_ranks: bool = False
    keep: list[str] = field(default_factory=list)
    writable: list[str] = field(default_factory=list)
    workflow: str = ""
    workflow_run: str = ""
    workflow_node: str = ""
    notes: list[str] = field(default_factory=list)
    resourcemanagers: list[str] = field(default_factory=list)
    version: int = PROTOCOL_VERSION

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AgentConfig:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known_fields(cls, data)
        values["store"] = JobStore(**known_fields(JobStore, data["store"]))
        values["fetch"] = [Input(**known_fields(Input, item)) for item in data.get("fetch") or []]
        return cls(**values)
