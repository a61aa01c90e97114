"""The options of ``run``: each is declared once, as a field of ``RunOptions``.

``spec`` builds a spec from them, ``command_line`` formats them as arguments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Localization, NamedInput, NamedOutput
from submarine_jobs.options.declaration import (
    Option,
    declared,
    flag,
    option,
    option_list,
    option_names,
    option_pairs,
)
from submarine_jobs.options.option_values import (
    ARCHIVE,
    ARGUMENTS,
    CONF,
    DURATION,
    ENV,
    FILE,
    FRACTION,
    IDLE_GPU,
    INPUT,
    INTERFACE,
    KEEP,
    LOCALIZATION,
    MEMORY,
    PARAM,
    PYTHON_ENV,
    QUICKLINK,
    RETURN,
    SAVE_OUTPUT,
    SECRET,
    SHARE,
    STALL,
    TIMEOUT,
    WITH,
    choice,
    count,
    place,
)
from submarine_jobs.options.role_options import RESOURCES, ROLE_OPTIONS, RoleOptions
from submarine_runtime.frameworks import KNOWN
from submarine_runtime.protocol import (
    GPU_TOPOLOGIES,
    RESTORE_POLICIES,
    SUCCESS_POLICIES,
    IdleLimit,
)
from submarine_runtime.translation import _, gettext_noop

#: Values of ``--type``.
SPARK = "spark"
TYPES = ("program", SPARK)
#: Keys of ``--conf`` with this prefix are Spark's, and no settings of the profile.
SPARK_PREFIX = "spark."
FRAMEWORKS = ("auto", *(word for word in KNOWN if word != "auto"))
#: Other words for ``any``: other systems have them, and their programs share no training.
SEPARATE_FRAMEWORKS = ("caffe", "sklearn", "theano")
_MAX_NAME = 128


@dataclass(frozen=True)
class RunOptions:
    """Options of ``run`` by their names; None or empty: not given.

    Parameters
    ----------
    program
        File to run: ``train.py``, ``train.ipynb``, or a file of the cells.
    roles
        Options of single roles, standard roles first.
    memory, vcores, gpus
        Size of the workers and of roles without a size; memory in MiB.
    min_workers, processes, node_label, nodes, racks, spread, avoid_nodes
        For roles without an own value; see ``spec.Role``.
    timeout, gang_timeout, heartbeat, lost_after
        Seconds; a ``gang_timeout`` of 0 is no limit.
    allow_failures
        0 to 1.
    executor_resources
        ``memory`` (MiB), ``vcores`` and ``gpus``, as far as given.
    settings
        Settings of the profile, or of Spark, for this run (``--conf``).
    """

    name: str | None = option(
        "--name", metavar="NAME", heading="Program", help="Name of the job [name of the file]."
    )
    program: str | None = option(
        "--program",
        metavar="FILE",
        completion="programs",
        help="File to run [main.py of the cells].",
    )
    args: tuple[str, ...] = option(
        "--args",
        ARGUMENTS,
        metavar="TEXT",
        default=(),
        help="Arguments of the program, as one text.",
    )
    framework: str = option(
        "--framework",
        choice((*FRAMEWORKS, *SEPARATE_FRAMEWORKS), ignore_case=True),
        metavar="NAME",
        default="auto",
        help=_("Framework to set up: {frameworks} [auto: by the imports].").format(
            frameworks=", ".join((*FRAMEWORKS, *SEPARATE_FRAMEWORKS))
        ),
    )
    type: str = option(
        "--type",
        choice(TYPES, ignore_case=True),
        metavar="TYPE",
        default="program",
        heading="Spark",
        help="program, or spark: the program is the driver of a Spark application [program].",
    )
    executors: int | None = option(
        "--executor",
        count(gettext_noop("The number of executors"), 1),
        metavar="N",
        help="Executors of a Spark job [2].",
    )
    executor_resources: Mapping[str, int] | None = option(
        "--executor_resources",
        RESOURCES,
        metavar="LIST",
        help="Size of an executor: memory=4G,vcores=2,gpu=1 [memory=2G,vcores=1].",
    )
    roles: tuple[RoleOptions, ...] = ()
    memory: int | None = option(
        "--memory",
        MEMORY,
        metavar="SIZE",
        heading="Size",
        help="A task's memory: 8G, 512M, 8192 (MiB) [2G; PyTorch: 1.5G more per process].",
    )
    vcores: int | None = option(
        "--vcores",
        count(gettext_noop("The number of vcores"), 1),
        metavar="N",
        help="Virtual cores of a task [1].",
    )
    gpus: int | None = option(
        "--gpu",
        count(gettext_noop("The number of GPUs")),
        metavar="N",
        help="GPUs of a worker, chief or evaluator [0].",
    )
    processes: int | None = option(
        "--processes",
        count(gettext_noop("The number of processes"), 1),
        metavar="N",
        help="Processes of the program in each container [the framework's].",
    )
    timeout: float | None = option(
        "--timeout",
        DURATION,
        metavar="TIME",
        help="End the job, or the execution of a notebook, after 90s, 15m, 2h, 1h30m.",
    )
    min_workers: int | None = option(
        "--min-workers",
        count(gettext_noop("The least number"), 1),
        metavar="N",
        heading="Gang and faults",
        help="Start with at least this number of workers [all].",
    )
    gang_timeout: float | None = option(
        "--gang-timeout",
        TIMEOUT,
        metavar="TIME",
        help="Release the containers if the gang is not complete after this time; never [10m].",
    )
    gang_retries: int | None = option(
        "--gang-retries",
        count(gettext_noop("The number of tries")),
        metavar="N",
        help="Number of further attempts after a gang timeout [5].",
    )
    max_restarts: int | None = option(
        "--max-restarts",
        count(gettext_noop("The number of restarts")),
        metavar="N",
        help="Restart after up to N faults, whatever their cause [3, errors only after progress].",
    )
    policy: str | None = option(
        "--policy",
        choice(SUCCESS_POLICIES),
        aliases=("--success",),
        help="Which tasks determine success [set by the framework, mostly chief].",
    )
    allow_failures: float | None = option(
        "--allow-failures",
        FRACTION,
        metavar="F",
        help="Fraction of the tasks that may fail: 0.2 or 20% [0].",
    )
    require_collective: bool = flag(
        "--require-collective", help="Fail the job if its tasks did not train together."
    )
    heartbeat: float | None = option(
        "--heartbeat",
        DURATION,
        metavar="TIME",
        help="Interval between heartbeats of a task [1s].",
    )
    lost_after: float | None = option(
        "--lost-after",
        DURATION,
        metavar="TIME",
        help="Time without a heartbeat after which a task is lost [25s].",
    )
    stall: IdleLimit | None = option(  # noqa: RUF009 - a declaration
        "--stall",
        STALL,
        metavar="TIME[:ACTION]",
        help="Report the stacks of all ranks when one had no log, progress, CPU or GPU use for "
        "this time (warn), or also restart the gang (restart); off [10m:warn].",
    )
    idle_gpu: IdleLimit | None = option(  # noqa: RUF009 - as above
        "--idle-gpu",
        IDLE_GPU,
        metavar="TIME[:ACTION]",
        help="Report a job whose GPUs were all idle for this time (warn), or end it (end) [off].",
    )
    inputs: tuple[NamedInput, ...] = option_list(
        "--input",
        INPUT,
        metavar="NAME=URI[:MODE]",
        heading="Data",
        help="Data of the program; MODE is download, shard, list, mount or stream; repeatable.",
    )
    input_path: str | None = option(
        "--input_path", metavar="URI", help="Input; replaces %input_path%."
    )
    checkpoint_path: str | None = option(
        "--checkpoint_path",
        metavar="URI",
        help="Restore checkpoints from and save them to URI; replaces %checkpoint_path%.",
    )
    saved_model_path: str | None = option(
        "--saved_model_path",
        metavar="URI",
        help="Publish the model there; or replaces %saved_model_path%.",
    )
    resume_from: str | None = option(
        "--resume",
        metavar="JOB",
        completion="jobs",
        help="Begin with the newest checkpoint of that job.",
    )
    restore: str | None = option(
        "--restore",
        choice(RESTORE_POLICIES),
        help="What each of several tasks restores: the chief's files, the parts of all tasks, or "
        "its own; strict: as auto, but fail instead of a warning [auto].",
    )
    params: Mapping[str, Any] = option_pairs(
        "--param",
        PARAM,
        metavar="NAME=VALUE",
        help="Parameter of the program, JSON or text; repeatable.",
    )
    files: tuple[Localization, ...] = option_list(
        "--file",
        FILE,
        metavar="SRC[:TARGET]",
        help="Copy a file or directory to the working directory; repeatable.",
    )
    archives: tuple[Localization, ...] = option_list(
        "--archive",
        ARCHIVE,
        metavar="SRC[:DIR]",
        help="Copy an archive and unpack it; repeatable.",
    )
    localization: tuple[Localization, ...] = option_list(
        "--localization",
        LOCALIZATION,
        metavar="SRC:TARGET[:rw]",
        help="Like --file, as in Apache Submarine; :rw: a writable copy; repeatable.",
    )
    with_names: tuple[str, ...] = option_names(
        "--with", WITH, metavar="NAMES", help="Send the values of these variables: x,y."
    )
    return_names: tuple[str, ...] = option_names(
        "--return",
        RETURN,
        metavar="NAMES",
        help="Return these variables of the program: acc,history.",
    )
    return_all_ranks: bool = flag(
        "--return-all-ranks", help="Return them from every rank, not only from rank 0."
    )
    keep: tuple[str, ...] = option_list(
        "--keep",
        KEEP,
        metavar="PATTERN",
        help="Save these files of the working directory: 'runs/*'; repeatable.",
    )
    outputs: tuple[NamedOutput, ...] = option_list(
        "--save-output",
        SAVE_OUTPUT,
        metavar="NAME=URI[:MODE]",
        help="Publish the program's directory NAME at URI; MODE: overwrite, append-run, stream, "
        "parts; repeatable.",
    )
    save_on_failure: bool = flag(
        "--save-on-failure", help="Save SUBMARINE_OUTPUT_DIR of tasks that fail, too."
    )
    python_env: str | None = option(
        "--python-env",
        PYTHON_ENV,
        metavar="ENV",
        heading="Environment",
        help="Python on the nodes: host, path:DIR, auto, conda:NAME, requirements:FILE, uv:LOCK, "
        "pyproject[:DIR], archive:URI, shared:URI or docker:IMAGE [host].",
    )
    docker_image: str | None = option("--docker_image", metavar="IMAGE", help="Image of all tasks.")
    env: Mapping[str, str] = option_pairs(
        "--env", ENV, metavar="K=V", help="Environment variable of the program; repeatable."
    )
    secrets: Mapping[str, str] = option_pairs(
        "--secret",
        SECRET,
        metavar="NAME[=FILE]",
        help="Secret variable of the program: the value of the same variable here, or of the "
        "keyring, or the content of FILE; repeatable.",
    )
    queue: str | None = option(
        "--queue",
        metavar="QUEUE",
        heading="Cluster",
        completion="queues",
        help="Queue [the profile's].",
    )
    keytab: str | None = option(
        "--keytab",
        metavar="FILE",
        help="Kerberos keys in place of a ticket cache; with --principal.",
    )
    principal: str | None = option(
        "--principal", metavar="NAME", help="Name in the keytab: alice@EXAMPLE.COM."
    )
    distribute_keytab: bool = flag(
        "--distribute_keytab",
        help="Send the keytab to the job, which then outlives its client's ticket.",
    )
    share: tuple[str, ...] = option_names(
        "--share",
        SHARE,
        metavar="view:NAME,...",
        default=(),
        help="Let users and groups (@NAME) read the job; modify:NAME may also cancel and rerun "
        "it; repeatable.",
    )
    priority: int | None = option(
        "--priority",
        count(gettext_noop("The priority")),
        metavar="N",
        help="Priority within the queue; higher numbers first [the queue's].",
    )
    node_label: str | None = option(
        "--node-label",
        place(gettext_noop("a node label")),
        metavar="LABEL",
        help="Only on nodes with this label.",
    )
    nodes: tuple[str, ...] = option_list(
        "--node",
        place(gettext_noop("a node")),
        metavar="NODE",
        help="Only on this node; repeatable.",
    )
    racks: tuple[str, ...] = option_list(
        "--rack",
        place(gettext_noop("a rack")),
        metavar="RACK",
        help="Only in this rack; repeatable.",
    )
    spread: bool = flag("--spread", help="Prefer nodes without a task of the same role.")
    avoid_nodes: tuple[str, ...] = option_list(
        "--avoid-node",
        place(gettext_noop("a node")),
        metavar="NODE",
        help="Not on this node; repeatable.",
    )
    network_interface: str | None = option(
        "--network-interface",
        INTERFACE,
        metavar="IF",
        help="Network interface of the tasks: eth0, ib0 [detected on each node].",
    )
    gpu_topology: str | None = option(
        "--gpu-topology",
        choice(GPU_TOPOLOGIES),
        help="Several GPUs of a task close together, or apart; with nvidia.com/gpu [the node's].",
    )
    # Options of all commands; the grammar declares their help.
    profile: str | None = option("--profile")
    backend: str | None = option("--backend")
    settings: Mapping[str, str] = option_pairs(
        "--conf",
        CONF,
        metavar="K=V",
        help="Setting of the profile, or of Spark (spark.*), for this run; repeatable.",
    )
    quicklinks: Mapping[str, str] = option_pairs(
        "--quicklink",
        QUICKLINK,
        metavar="LABEL=URL",
        help="Link shown with the job; worker-0 is replaced by its host; repeatable.",
    )
    wait: bool = flag(
        "--wait",
        heading="Flow",
        aliases=("--wait_job_finish",),
        help="Wait until the job has ended, and show its log.",
    )
    on_interrupt: str = option(
        "--on-interrupt",
        choice(("detach", "cancel")),
        default="detach",
        help="Effect of Ctrl-C on the job with --wait [detach], or on the jobs of an "
        "executed notebook [cancel; detach with --run-id].",
    )
    dry_run: bool = flag("--dry-run", help="Check and show, submit nothing.")
    force: bool = flag("--force", help="Submit in spite of errors of the checks.")
    verbose: bool = flag("--verbose", help="Print each step.")

    def role(self, name: str) -> RoleOptions | None:
        """Return the options of one role; None if there are none."""
        return next((role for role in self.roles if role.name == name), None)

    @property
    def command(self) -> str | None:
        """The command of the workers (``--worker_launch_cmd``)."""
        worker = self.role("worker")
        return worker.command if worker is not None else None

    @property
    def config_options(self) -> dict[str, str | None]:
        """The options for ``config.load_config``."""
        named = {
            "profile": self.profile,
            "backend": self.backend,
            "queue": self.queue,
            "python_env": self.python_env,
            "keytab": os.path.abspath(os.path.expanduser(self.keytab)) if self.keytab else None,
            "principal": self.principal,
        }
        settings = {
            f"settings.{key}": value
            for key, value in self.settings.items()
            if not key.startswith(SPARK_PREFIX)
        }
        return {**named, **settings}


def check_name(name: str) -> str:
    """Return a valid name of a job unchanged.

    Raises
    ------
    UsageError
        If it is empty, longer than 128 characters, or has control characters.
    """
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise UsageError(
            _("{name!r} cannot be a job's name.").format(name=name[:40]),
            _("Use 1 to 128 printable characters, for example digits."),
        )
    return name


def merge_resources(listed: Mapping[str, int], single: Mapping[str, int | None]) -> dict[str, int]:
    """Merge ``--worker_resources`` with ``--memory``, ``--vcores`` and ``--gpu``.

    Raises
    ------
    UsageError
        If both give different amounts of the same resource.
    """
    merged = dict(listed)
    for key, amount in single.items():
        if amount is None:
            continue
        if merged.setdefault(key, amount) != amount:
            shown = {"memory": "--memory", "vcores": "--vcores", "gpus": "--gpu"}[key]
            raise UsageError(
                _(
                    "{shown} and --worker_resources give different amounts of the same "
                    "resource ({amount} and {other})."
                ).format(shown=shown, amount=amount, other=merged[key]),
                _("Give one of them."),
            )
    return merged


def _run_options() -> dict[str, Option]:
    found: dict[str, Option] = {}
    options = declared(RunOptions)
    for item in fields(RunOptions):
        found.update(ROLE_OPTIONS if item.name == "roles" else {item.name: options[item.name]})
    return found


#: All options of ``run`` by their parameter, in the order of the help. A parameter is a field of
#: ``RunOptions``, or a name in ``ROLE_OPTIONS``.
RUN_OPTIONS: Mapping[str, Option] = _run_options()
