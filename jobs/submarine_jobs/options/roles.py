"""Build the roles of a spec from role options: number, size, kind, command.

A role without a command runs the command of the workers, else the program. ``role_checks`` rejects
contradictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from submarine_jobs.model import (
    TENSORBOARD_COMMAND,
    Resources,
    Role,
    default_kind,
    parse_python_env,
)
from submarine_jobs.options.role_options import RoleOptions, merge_roles
from submarine_jobs.options.run_options import RunOptions
from submarine_runtime.frameworks import process_count, setting_of

TENSORBOARD = "tensorboard"
#: Roles that serve other roles; they are no job without them.
AUXILIARY_ROLES = ("ps", "evaluator", "scheduler", "server", TENSORBOARD)
TENSORBOARD_HISTORY = "submarine:tensorboard --history"
#: Link to the TensorBoard of the job. Port 0 is replaced by the first port of the task.
TENSORBOARD_LINK = ("TensorBoard", "http://tensorboard-0:0/")
_BOARD_MEMORY = 1024
#: MiB for each process of PyTorch in a container after the first, if no memory is requested.
_FURTHER_MEMORY = 1536


@dataclass(frozen=True)
class RoleContext:
    """Values that apply to all roles of a job.

    Parameters
    ----------
    framework
        The resolved framework, never ``auto``.
    python
        Interpreter of the environment ``host``.
    own_launcher
        A library of the program starts one process for each device of a single task.
    """

    framework: str
    python: str
    own_launcher: bool = False


def requested_roles(options: RunOptions) -> tuple[RoleOptions, ...]:
    """Return the roles with at least one task; a worker is added if all are auxiliary."""
    asked = [role for role in options.roles if role.count]
    if options.role("worker") is None and all(role.name in AUXILIARY_ROLES for role in asked):
        asked.append(RoleOptions("worker"))
    return merge_roles(asked)


def is_only_tensorboard(options: RunOptions, *, program: bool) -> bool:
    """Return whether only a TensorBoard of all jobs of the user is requested.

    Parameters
    ----------
    program
        Whether there is a program for workers.
    """
    named = [role.name for role in options.roles if role.count]
    if named != [TENSORBOARD] or options.command is not None:
        return False
    return not program or options.role("worker") is not None


def needs_program(options: RunOptions) -> bool:
    """Return whether a role has no command, neither its own nor that of the workers."""
    if options.command is not None:
        return False
    return any(
        role.command is None and role.name != TENSORBOARD for role in requested_roles(options)
    )


def spec_roles(options: RunOptions, around: RoleContext, *, program: bool) -> tuple[Role, ...]:
    """Return the roles of the spec."""
    if is_only_tensorboard(options, program=program):
        board = options.role(TENSORBOARD) or RoleOptions(TENSORBOARD)
        if board.command is None:
            board = replace(board, command=TENSORBOARD_HISTORY)
        return (_role(board, options, around, kind="tracked"),)
    return tuple(_role(role, options, around) for role in requested_roles(options))


def _role(
    asked: RoleOptions, options: RunOptions, around: RoleContext, kind: str | None = None
) -> Role:
    settled = asked.kind or kind or _kind(asked.name, around.framework)
    python_env, image = _environment(asked)
    least = asked.least
    if least is None and asked.name == "worker":
        least = options.min_workers
    command = asked.command or (
        TENSORBOARD_COMMAND if asked.name == TENSORBOARD else options.command
    )
    return Role(
        name=asked.name,
        instances=asked.count,
        resources=_size(asked, options, around, works=settled == "tracked"),
        command=command,
        env=dict(asked.env),
        kind=settled,
        least=least,
        after=asked.after,
        node_label=asked.label or options.node_label,
        nodes=asked.nodes or options.nodes,
        racks=asked.racks or options.racks,
        relax=asked.relax,
        spread=asked.spread or (options.spread and settled != "sidecar"),
        avoid=asked.avoid or options.avoid_nodes,
        python_env=python_env,
        python=parse_python_env(python_env).interpreter(around.python) if python_env else None,
        docker_image=image,
        processes=asked.processes or (options.processes or 0 if settled == "tracked" else 0),
    )


def _kind(name: str, framework: str) -> str:
    usual = default_kind(name)
    if usual == "tracked" and name in setting_of(framework, "UNTRACKED"):
        return "untracked"
    return usual


def _size(
    asked: RoleOptions, options: RunOptions, around: RoleContext, *, works: bool
) -> Resources:
    """Return the role's size, else the job's, else the workers'; GPUs for tracked roles only.

    Without any, the memory suffices for the processes of PyTorch that the container has.
    """
    base = Resources(memory=_BOARD_MEMORY) if asked.name == TENSORBOARD else Resources()
    workers = options.role("worker") or RoleOptions("worker")
    job = (options.memory, options.vcores, options.gpus)
    like = (workers.memory, workers.vcores, workers.gpus)
    own = (asked.memory, asked.vcores, asked.gpus)
    if asked.name == TENSORBOARD:
        # The size of the job applies to TensorBoard only if it is the job.
        job, like = (job if works else (None, None, None)), (None, None, None)
    if not works or asked.name == TENSORBOARD:
        job, like = (*job[:2], None), (*like[:2], None)
    found = zip(own, job, like, (None, base.vcores, base.gpus), strict=True)
    memory, vcores, gpus = (
        next((amount for amount in amounts if amount is not None), None) for amounts in found
    )
    assert vcores is not None
    assert gpus is not None
    if memory is None:
        memory = base.memory
        if works and around.framework == "pytorch":
            memory += _FURTHER_MEMORY * (_processes(asked, options, around, gpus) - 1)
    return Resources(memory, vcores, gpus)


def _processes(asked: RoleOptions, options: RunOptions, around: RoleContext, gpus: int) -> int:
    """Return the number of processes that train in one container."""
    tasks = sum(role.count for role in requested_roles(options) if role.name != TENSORBOARD)
    requested = asked.processes or options.processes or 0
    if around.own_launcher and tasks == 1 and not requested:
        return max(1, gpus)
    return process_count(around.framework, requested, gpus, gang=tasks > 1)


def _environment(asked: RoleOptions) -> tuple[str | None, str | None]:
    """Return ``--python-env`` and image of the role; an image contains its Python."""
    if asked.python_env is None:
        return (f"docker:{asked.image}", asked.image) if asked.image else (None, None)
    parsed = parse_python_env(asked.python_env)
    return asked.python_env, parsed.value if parsed.kind == "docker" else asked.image
