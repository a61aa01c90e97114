"""From what was said of roles to the roles of a job: who is there, how large, of which kind; pure.

A role without a command of its own runs the workers' command where there is one, else the program.
Does not refuse what contradicts itself (``role_checks``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from submarine_jobs.model import BOARD_COMMAND, Resources, Role, parse_python_env, usual_kind
from submarine_jobs.options.role_options import RoleOptions, merge_roles
from submarine_jobs.options.run_options import RunOptions
from submarine_runtime.frameworks import trait

BOARD = "tensorboard"
#: Roles that help others and are no job by themselves.
HELPING = ("ps", "evaluator", "scheduler", "server", BOARD)
BOARD_HISTORY = "submarine:tensorboard --history"
#: Where the page of the job's TensorBoard is: port 0 stands for the first port of that task.
BOARD_LINK = ("TensorBoard", "http://tensorboard-0:0/")
_BOARD_MEMORY = 1024


@dataclass(frozen=True)
class Surroundings:
    """What the roles of one job share.

    Parameters
    ----------
    framework
        The settled word, never ``auto``.
    python
        Interpreter of ``host``.
    """

    framework: str
    python: str


def asked_roles(options: RunOptions) -> tuple[RoleOptions, ...]:
    """The roles with at least one task; a worker where no role that works was named."""
    asked = [role for role in options.roles if role.count]
    if options.role("worker") is None and all(role.name in HELPING for role in asked):
        asked.append(RoleOptions("worker"))
    return merge_roles(asked)


def only_board(options: RunOptions, *, program: bool) -> bool:
    """Whether TensorBoard over the user's history is all that was asked for.

    Parameters
    ----------
    program
        Whether there is a program that workers could run.
    """
    named = [role.name for role in options.roles if role.count]
    if named != [BOARD] or options.command is not None:
        return False
    return not program or options.role("worker") is not None


def needs_program(options: RunOptions) -> bool:
    """Whether some role has no command, neither its own nor the workers'."""
    if options.command is not None:
        return False
    return any(role.command is None and role.name != BOARD for role in asked_roles(options))


def roles_of(options: RunOptions, around: Surroundings, *, program: bool) -> tuple[Role, ...]:
    """The roles of the job's spec."""
    if only_board(options, program=program):
        board = options.role(BOARD) or RoleOptions(BOARD)
        if board.command is None:
            board = replace(board, command=BOARD_HISTORY)
        return (_role(board, options, around, kind="tracked"),)
    return tuple(_role(role, options, around) for role in asked_roles(options))


def _role(
    asked: RoleOptions, options: RunOptions, around: Surroundings, kind: str | None = None
) -> Role:
    settled = asked.kind or kind or _kind(asked.name, around.framework)
    python_env, image = _environment(asked)
    least = asked.least
    if least is None and asked.name == "worker":
        least = options.min_workers
    command = asked.command or (BOARD_COMMAND if asked.name == BOARD else options.command)
    return Role(
        name=asked.name,
        instances=asked.count,
        resources=_size(asked, options, works=settled == "tracked"),
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
    usual = usual_kind(name)
    if usual == "tracked" and name in trait(framework, "UNTRACKED"):
        return "untracked"
    return usual


def _size(asked: RoleOptions, options: RunOptions, *, works: bool) -> Resources:
    """Its own size, else the job's, else the workers'; only who works gets GPUs unasked."""
    base = Resources(memory=_BOARD_MEMORY) if asked.name == BOARD else Resources()
    workers = options.role("worker") or RoleOptions("worker")
    job = (options.memory, options.vcores, options.gpus)
    like = (workers.memory, workers.vcores, workers.gpus)
    own = (asked.memory, asked.vcores, asked.gpus)
    if asked.name == BOARD:
        # A board of its own is the job; beside a training it has nothing of its size.
        job, like = (job if works else (None, None, None)), (None, None, None)
    if not works or asked.name == BOARD:
        job, like = (*job[:2], None), (*like[:2], None)
    found = zip(own, job, like, (base.memory, base.vcores, base.gpus), strict=True)
    memory, vcores, gpus = (
        next(amount for amount in amounts if amount is not None) for amounts in found
    )
    return Resources(memory, vcores, gpus)


def _environment(asked: RoleOptions) -> tuple[str | None, str | None]:
    """The role's own ``--python-env`` and image; an image brings its own Python."""
    if asked.python_env is None:
        return (f"docker:{asked.image}", asked.image) if asked.image else (None, None)
    parsed = parse_python_env(asked.python_env)
    return asked.python_env, parsed.value if parsed.kind == "docker" else asked.image
