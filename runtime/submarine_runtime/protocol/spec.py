"""JobSpec: everything that a user can request for a job. It contains no secret and no code."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol.serialization import from_json, to_json

SPEC_VERSION = 2
#: Roles that serve other roles and do not end by themselves.
UNTRACKED_ROLES = ("ps", "scheduler", "server")
#: Roles outside the gang; the loss of such a task is not a fault.
SIDECAR_ROLES = ("tensorboard",)
#: Role of the only task of a job that runs a kernel in a container.
KERNEL_ROLE = "kernel"
#: Role of the only task of a job that runs a notebook server in a container.
NOTEBOOK_ROLE = "notebook"
#: ``--gpu-topology``: how a node chooses several GPUs of a container.
GPU_TOPOLOGIES = ("pack", "spread")
#: Kind of a Python environment that is in an image.
_DOCKER = "docker:"
KINDS = ("tracked", "untracked", "sidecar")
#: Counted restarts of a job without ``--max-restarts``.
_MAX_RESTARTS = 3
#: Start of the command of a TensorBoard role; ``submarine_runtime.tensorboards`` implements it.
TENSORBOARD_COMMAND = "submarine:tensorboard"


@dataclass(frozen=True)
class Resources:
    """Size of one task: memory of the program in MiB, virtual cores, GPUs."""

    memory: int = 2048
    vcores: int = 1
    gpus: int = 0


#: What follows on a stall, and on idle GPUs, after the time of the option.
STALL_ACTIONS = ("warn", "restart")
IDLE_GPU_ACTIONS = ("warn", "end")


@dataclass(frozen=True)
class IdleLimit:
    """``TIME[:ACTION]`` of ``--stall`` and ``--idle-gpu``: seconds, 0 for no limit, and a word."""

    seconds: float = 0.0
    action: str = "warn"


def default_kind(role: str) -> str:
    """Return the default kind of a role with this name."""
    if role in SIDECAR_ROLES:
        return "sidecar"
    return "untracked" if role in UNTRACKED_ROLES else "tracked"


@dataclass(frozen=True)
class Role:
    """Role of a job: tasks with the same program and size.

    Parameters
    ----------
    command
        None: run the program of the bundle with the Python of the job.
    kind
        ``tracked`` (counts for the job's end), ``untracked`` (a parameter server: does not keep a
        job alive, but its loss is a fault) or ``sidecar`` (a TensorBoard: outside the gang, does
        not keep a job alive, its loss is not a fault).
    least
        ``--min-workers``: the number of instances that suffices for a start; None: all.
    after
        Roles with programs that must run before this role's programs are started.
    node_label, nodes, racks
        Constraints on the nodes of its containers; empty: none. With ``relax``, YARN uses other
        nodes when these nodes or racks are full.
    spread
        Request another container (bounded) until the node has no other task of this role.
    avoid
        Host names that are not used (bounded as well).
    python_env, python
        Like in ``JobSpec``, for this role only; None: those of the job.
    docker_image
        Image of the containers of this role; None: that of the job.
    processes
        Processes of the program in each container; 0: the default of the framework (one per GPU for
        PyTorch, else one).
    """

    name: str = "worker"
    instances: int = 1
    resources: Resources = field(default_factory=Resources)
    command: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    kind: str = "tracked"
    least: int | None = None
    after: tuple[str, ...] = ()
    node_label: str | None = None
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    relax: bool = False
    spread: bool = False
    avoid: tuple[str, ...] = ()
    python_env: str | None = None
    python: str | None = None
    docker_image: str | None = None
    processes: int = 0


def is_tensorboard(role: Role) -> bool:
    """Whether a role runs TensorBoard."""
    return (role.command or "").startswith(TENSORBOARD_COMMAND)


def has_secrets(spec: JobSpec, role: Role) -> bool:
    """Whether the tasks of a role receive the values of ``--secret``; a TensorBoard does not."""
    return bool(spec.secrets) and not is_tensorboard(role)


@dataclass(frozen=True)
class NamedInput:
    """``--input NAME=URI[:MODE]``: the value of ``SUBMARINE_INPUT_<NAME>`` depends on the mode.

    Parameters
    ----------
    uri
        A file, a directory, a pattern of names, or ``@`` and a text file with one URI per line.
    shard
        Whether the files are divided among the tasks of ``shard_roles`` (``:shard=ROLE,...``);
        empty: see ``frameworks.sharding_tasks``. True for ``:shard``, ``:list`` and ``:stream``.
    mode
        ``download`` (``:shard`` too): the files are fetched before the start, and the value is
        their local path. ``list``: the value is the path of a file with the URIs of this task's
        files. ``mount``: the value is the URI. ``stream``: the value is the path of a named pipe
        with this task's records, or ``-`` for standard input.
    options
        Words of ``:stream=WORD,...`` that are not roles: ``epochs=3``.
    """

    name: str
    uri: str
    shard: bool = False
    shard_roles: tuple[str, ...] = ()
    mode: str = "download"
    options: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The mode as it is typed."""
        return "shard" if self.shard and self.mode == "download" else self.mode


#: ``mode`` of a ``NamedOutput``; empty: the URI must be free.
OVERWRITE, APPEND_RUN = "overwrite", "append-run"
#: Name of the output with the model; no name of ``--save-output`` has a hyphen.
MODEL_OUTPUT = "saved-model"


@dataclass(frozen=True)
class NamedOutput:
    """``--save-output NAME=URI[:overwrite|append-run][:stream|:parts]``.

    The program writes to ``SUBMARINE_OUTPUT_<NAME>``. With ``stream`` each finished file is
    published while the job runs, otherwise all files at its end. With ``parts`` they are staged
    when they are finished, under their own names.
    """

    name: str
    uri: str
    mode: str = ""
    stream: bool = False
    parts: bool = False

    @property
    def is_model(self) -> bool:
        """Whether it is the model of ``--saved_model_path``, which the chief writes."""
        return self.name == MODEL_OUTPUT

    @property
    def option(self) -> str:
        """The option that asked for it, as a user typed it."""
        return "--saved_model_path" if self.is_model else f"--save-output {self.name}"


@dataclass(frozen=True)
class Localization:
    """File or directory to localize: source URI, name in the container, ``rw`` or ``ro``."""

    source: str
    target: str
    mode: str = "ro"


@dataclass(frozen=True)
class SparkRequest:
    """``--type spark``: the executors, and the settings of Spark (``--conf spark.KEY=VALUE``)."""

    executors: int = 2
    resources: Resources = field(default_factory=Resources)
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSpec:
    """Specification of a job, stored as ``spec.json``.

    Parameters
    ----------
    name
        Name from the user; the job id starts with a slug of it.
    program, args
        Entry file in the bundle and its arguments; None: the roles have commands.
    python_env
        Value of ``--python-env``; see ``submarine_jobs.environments``.
    python
        Interpreter in the container, resolved from ``python_env``.
    input_path, checkpoint_path, saved_model_path
        URIs, as in Apache Submarine; they replace ``%input_path%`` etc. in commands. The model is
        published to ``saved_model_path`` if nothing uses the placeholder.
    timeout
        Time limit of the program in seconds; None: no limit.
    archives
        Archives (URI or path) that are unpacked in the working directory, with mode ``ro``.
    inputs
        Inputs that are fetched before the program starts.
    params
        ``--param``: NAME -> JSON value.
    policy, gang_timeout, gang_retries, heartbeat, lost_after, restore
        See ``CoordinatorConfig``; None: its default, or the value that the framework needs. A
        ``gang_timeout`` of 0 is no limit.
    allowed_failures
        Share of the tracked tasks that may fail finally, 0 to 1; for the policy ``fraction``.
    max_restarts
        ``--max-restarts``: the number of faults of tasks that are followed by a restart, in place
        or of the gang, whatever their cause. Pre-emption and lost nodes do not count. A permanent
        failure (an ImportError) is never followed by a restart. None: three, and an error of the
        program restarts the gang only if it has made progress (``coordinator.machine.faults``).
    framework_reason
        Why the framework was chosen, a part of a sentence; empty: the user named it, or it is
        ``any``.
    priority
        YARN priority within the queue, from 0; None: the default of the queue.
    network_interface
        Interface for gloo and NCCL; None: detected on each node.
    gpu_topology
        A word of ``GPU_TOPOLOGIES``, for the plugin of ``nvidia.com/gpu``; None: its default.
    docker_image
        Image of all containers except the application master's; None: no Docker.
    resume_from
        Id of a job; its newest checkpoint is restored before the first start.
    with_names, return_names
        Names of the values that are sent to the program and returned from it.
    bundle_digest
        SHA-256 of the bundle, hex.
    notebook, cell_id
        Path of the notebook of the program and the cell that submitted the job, as the kernel
        reports them; None: not from a notebook.
    workflow, workflow_run, workflow_node
        Workflow that started the job; see ``workflow_origin``. None: none.
    yarn_tags
        Additional tags of the YARN application.
    lease
        Seconds after which the job ends if its client does not renew it; None: no limit.
    passed_on
        Names of the path placeholders that command, arguments or environment use.
    own_launcher
        A library of the program (Lightning, Accelerate, a trainer of transformers) starts one
        process for each device itself. A single task with one process then has no ranks in its
        environment, because those libraries interpret them as the work of another launcher.
    checkpoint_links
        Directories of the working directory that are links into the checkpoint directory, because
        a library of the program writes its checkpoints there.
    return_all_ranks
        Return the values of every rank, not only of rank 0.
    keep
        Patterns of files in the working directory to save as outputs.
    secrets
        ``--secret``: NAME -> the file with the value, as it was typed; empty: the environment of
        the submitting process, or the keyring. The values are in ``layout.SECRET_ENV``.
    distribute_keytab
        Send the keytab of the user to the coordinator, or to the agent of the only task.
    share
        ``--share``: entries ``view:bob``, ``view:@analysts`` (a group) or ``modify:carol``.
    require_collective
        Fail the job if its tasks never open the port of their rendezvous.
    outputs
        Outputs that are published at URIs when the job has succeeded.
    save_on_failure
        Save ``SUBMARINE_OUTPUT_DIR`` also of tasks that do not succeed.
    spark
        The program is the driver of a Spark application; None: no Spark job.
    stall
        Time without log, progress, CPU and GPU use of a task that trains, and what follows:
        ``warn`` or ``restart``.
    idle_gpu
        Time in which all GPUs of the job are idle, and what follows: ``warn`` or ``end``.
    run_id
        Id of the headless run, so that a second attempt can attach to the job.
    """

    name: str
    backend: str
    queue: str | None = None
    roles: tuple[Role, ...] = (Role(),)
    program: str | None = "main.py"
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    framework: str = "auto"
    framework_reason: str = ""
    python_env: str = "host"
    python: str = ""
    input_path: str | None = None
    checkpoint_path: str | None = None
    saved_model_path: str | None = None
    localization: tuple[Localization, ...] = ()
    quicklinks: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    with_names: tuple[str, ...] = ()
    return_names: tuple[str, ...] = ()
    bundle_digest: str = ""
    notebook: str | None = None
    rerun_of: str | None = None
    archives: tuple[Localization, ...] = ()
    inputs: tuple[NamedInput, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    allowed_failures: float = 0.0
    max_restarts: int | None = None
    gang_timeout: float | None = None
    gang_retries: int | None = None
    heartbeat: float | None = None
    lost_after: float | None = None
    priority: int | None = None
    network_interface: str | None = None
    gpu_topology: str | None = None
    docker_image: str | None = None
    resume_from: str | None = None
    restore: str | None = None
    cell_id: str | None = None
    workflow: str | None = None
    workflow_run: str | None = None
    workflow_node: str | None = None
    yarn_tags: tuple[str, ...] = ()
    lease: float | None = None
    run_id: str | None = None
    passed_on: tuple[str, ...] = ()
    own_launcher: bool = False
    checkpoint_links: tuple[str, ...] = ()
    require_collective: bool = False
    return_all_ranks: bool = False
    keep: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    distribute_keytab: bool = False
    share: tuple[str, ...] = ()
    outputs: tuple[NamedOutput, ...] = ()
    save_on_failure: bool = False
    spark: SparkRequest | None = None
    stall: IdleLimit = field(default_factory=IdleLimit)
    idle_gpu: IdleLimit = field(default_factory=IdleLimit)
    version: int = SPEC_VERSION

    @property
    def worker(self) -> Role:
        """The only role of a single-task job, else the role of the chief."""
        by_name = {role.name: role for role in self.roles}
        for name in ("chief", "master", "worker"):
            if name in by_name:
                return by_name[name]
        return self.roles[0]

    @property
    def writable(self) -> list[str]:
        """Localized files of which the program gets a copy that it may change."""
        return [item.target for item in (*self.localization, *self.archives) if item.mode == "rw"]

    @property
    def restart_limit(self) -> int:
        """Number of counted restarts; a job without a coordinator is not restarted."""
        if not self.distributed:
            return 0
        return _MAX_RESTARTS if self.max_restarts is None else self.max_restarts

    @property
    def task_count(self) -> int:
        """Number of tasks of all roles."""
        return sum(role.instances for role in self.roles)

    @property
    def published(self) -> tuple[NamedOutput, ...]:
        """``outputs``, and the model if no program writes it to ``saved_model_path`` itself."""
        uri = self.saved_model_path
        if not uri or "saved_model_path" in self.passed_on:
            return self.outputs
        return (*self.outputs, NamedOutput(MODEL_OUTPUT, uri))

    def image_of(self, role: Role) -> str:
        """Return the Docker image of a role; empty: no Docker."""
        environment = role.python_env or self.python_env or ""
        named = environment[len(_DOCKER) :] if environment.startswith(_DOCKER) else ""
        return role.docker_image or named or self.docker_image or ""

    @property
    def distributed(self) -> bool:
        """Whether the job needs a coordinator: several tasks, or a feature that only it has."""
        role = self.roles[0]
        constrained = role.node_label or role.nodes or role.racks or role.avoid
        restarts = self.max_restarts or (self.stall.seconds and self.stall.action == "restart")
        features = restarts or role.kind != "tracked" or role.after
        return self.task_count > 1 or bool(constrained or self.image_of(role) or features)

    def to_bytes(self) -> bytes:
        """Return canonical JSON: equal specs have equal bytes."""
        return json.dumps(to_json(self), sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> JobSpec:
        """Read the JSON of ``to_bytes``; unknown fields of newer versions are ignored.

        Raises
        ------
        ValueError
            If it is not a spec, or its version is not supported.
        """
        raw = json.loads(data)
        if not isinstance(raw, dict) or int(raw.get("version", 0)) > SPEC_VERSION:
            raise ValueError("spec.json is not a spec that this version of Submarine can read")
        return from_json(cls, raw)
