"""Configuration of an agent (``agent.json``) and the variables that name its task; no secrets.

The token, certificate and key are in ``secret.json`` (mode 0600) in the same directory. The
environment of the *user's program* is described by ``submarine_runtime.frameworks``, the
configuration of the coordinator by ``coordinator_config``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from submarine_runtime.protocol.hdfs_clients import HdfsClients
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.serialization import PROTOCOL_VERSION
from submarine_runtime.protocol.spec import (
    JobSpec,
    NamedInput,
    NamedOutput,
    Resources,
    Role,
    is_tensorboard,
)

#: Exit code of an agent or coordinator that could not write claim or record because the job
#: directory is full; the exit code is the only way to report it to the cluster.
NO_SPACE_CODE = 73
#: The same if the job directory's file system was not available during the whole wait.
STORE_UNAVAILABLE_CODE = 74
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
        User of the cluster; the proof of simple authentication.
    authentication
        ``simple``, or ``token``: the container's delegation tokens.
    namenode
        ``host:port`` of the NameNode's RPC interface, as in the program's URLs; empty: unknown, or
        a nameservice.
    principal
        Principal of the keytab in this container (``layout.KEYTAB``), by which it obtains fresh
        tokens; empty: there is none.
    token_interval
        Seconds between two looks for fresh tokens in the job directory; 0: none.
    ca
        Certificates of the authorities that sign those of the cluster's servers, in PEM; empty:
        those of the node.
    gateway
        Whether ``webhdfs`` is an HttpFS gateway, which has tokens of its own.
    shared
        Whether new files are readable by the users and groups in the directory's default ACL.
    """

    kind: str
    path: str
    webhdfs: list[str] = field(default_factory=list)
    user: str | None = None
    authentication: str = "simple"
    namenode: str = ""
    principal: str = ""
    token_interval: float = 0.0
    ca: str = ""
    gateway: bool = False
    shared: bool = False

    @property
    def uses_tokens(self) -> bool:
        """Whether the container signs in with delegation tokens."""
        return self.authentication == "token"


@dataclass
class LogServer:
    """The history server that shows aggregated logs, and the ResourceManagers' scheduler ports.

    Parameters
    ----------
    url
        ``yarn.log.server.url``; empty: there is none.
    schedulers
        ``host:port`` of each.
    """

    url: str = ""
    schedulers: list[str] = field(default_factory=list)


#: Variables that identify a container of a distributed job; the agent removes them from the
#: program's environment. Plain words and ``host:port`` only, because skein does not quote.
TASK_VARIABLE = "SUBMARINE_AGENT_TASK"
SEAT_VARIABLE = "SUBMARINE_AGENT_SEAT"
COORDINATOR_VARIABLE = "SUBMARINE_AGENT_COORDINATOR"


@dataclass
class InputSource:
    """What an agent needs to know of an input, besides its path.

    Parameters
    ----------
    listing
        File in the job directory with the files of the input (``agent.preparation.listings``);
        empty: the agent lists the path.
    url
        Prefix of the absolute paths of the listing, ``hdfs://host:port``; in mode ``mount`` the URI
        for the program.
    hub
        Directory of a repository of the Hugging Face hub below ``HF_HOME/hub``; empty: none.
    commit, refs
        Its commit, and the names that mean it.
    """

    listing: str = ""
    url: str = ""
    hub: str = ""
    commit: str = ""
    refs: tuple[str, ...] = ()


@dataclass
class AgentConfig:
    """The spec of the job, and what else an agent needs.

    ``index``, ``epoch`` and ``attempt`` of a task in a distributed job come from the environment
    and from the coordinator (``protocol.link``).

    Parameters
    ----------
    record
        The record before the agent starts: id, owner, requested resources, phases. A phase without
        an end (``queue``) ended when the agent's container began.
    intent
        Identifier of the submission.
    role
        Name of the task's role.
    python
        Interpreter that runs the program, unless role or spec name one.
    memory_slack
        MiB above the memory of the role from which the agent ends the program.
    ship_interval, ship_bytes
        A log segment is published after this number of seconds or bytes, whichever comes first.
    kill_grace
        Seconds between SIGTERM and SIGKILL.
    save_grace
        Seconds that a task waits while the job directory's file system is not available: to claim
        the job, to fetch inputs and checkpoints, to save outputs, logs and record.
    listen
        Address to bind for the live view: ``127.0.0.1`` for the local backend, else ``0.0.0.0``.
    port_range
        ``LOW-HIGH``: the ports that the processes of the job bind; empty: any.
    links
        Label -> URL, for the record: the user's quicklinks and the links back to the notebook.
    fetch
        Inputs to fetch to this container before the program starts; ``uri`` is an absolute path in
        the job store's file system. The first one's local path replaces each ``%input_path%`` that
        is left in command, arguments and environment.
    sources
        Name of an input -> its source, for inputs that are not only a path in the job store.
    stores
        Prefix of URIs (``hdfs://other``) -> how this container reads files there.
    publish
        Outputs to publish; ``uri`` is the absolute path of the new directory in the job store's
        file system.
    checkpoint_path
        Path in the job store's file system from which checkpoints are restored and to which they
        are synced; None: the job directory's own.
    sync_interval
        Seconds between two scans of the directories that are synced while the program runs.
    restore_from
        Job directory (path in the same store); its newest checkpoint is restored before the first
        start: ``rerun --resume``.
    resourcemanagers
        Base URLs of the ResourceManagers' REST interface, for a single task with localized
        archives: they report when its container was allocated.
    node_scheme
        ``http`` or ``https``: the scheme of the NodeManagers' web pages.
    claim_gpus
        Claim devices by lock and set CUDA_VISIBLE_DEVICES, because the cluster does not isolate
        them; None: the agent decides by the devices that it sees.
    hdfs
        HDFS for the clients in the program.
    log_server
        For a task in the master's container.
    """

    spec: JobSpec
    record: JobRecord
    intent: str
    store: JobStore
    role: str = "worker"
    index: int = 0
    epoch: int = 1
    attempt: int = 1
    python: str = "python3"
    memory_slack: int = 0
    listen: str = "0.0.0.0"  # noqa: S104 - containers are watched from other hosts
    port_range: str = ""
    ship_interval: float = 10.0
    ship_bytes: int = 1 << 20
    kill_grace: float = 10.0
    save_grace: float = 600.0
    links: dict[str, str] = field(default_factory=dict)
    fetch: tuple[NamedInput, ...] = ()
    sources: dict[str, InputSource] = field(default_factory=dict)
    stores: dict[str, JobStore] = field(default_factory=dict)
    checkpoint_path: str | None = None
    sync_interval: float = 10.0
    restore_from: str | None = None
    claim_gpus: bool | None = None
    node_scheme: str = "http"
    publish: tuple[NamedOutput, ...] = ()
    resourcemanagers: list[str] = field(default_factory=list)
    hdfs: HdfsClients = field(default_factory=HdfsClients)
    log_server: LogServer = field(default_factory=LogServer)
    version: int = PROTOCOL_VERSION

    def of_role(self, role: Role) -> AgentConfig:
        """Return the configuration of the agents of ``role``; TensorBoard has no data."""
        if is_tensorboard(role):
            return replace(self, role=role.name, fetch=(), publish=())
        return replace(self, role=role.name)

    @property
    def task_role(self) -> Role:
        """The role of the task."""
        return next(role for role in self.spec.roles if role.name == self.role)

    @property
    def size(self) -> Resources:
        """Memory, virtual cores and GPUs of the task."""
        return self.task_role.resources

    @property
    def env(self) -> dict[str, str]:
        """Variables of the program: those of the job and of the role."""
        return {**self.spec.env, **self.task_role.env}

    @property
    def interpreter(self) -> str:
        """Path of the interpreter that runs the program."""
        return self.task_role.python or self.spec.python or self.python
