"""Build the spec of a job from options and a profile, and reject contradictory options."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Protocol

from submarine_jobs import checks, inputs
from submarine_jobs.config import python_of
from submarine_jobs.errors import UsageError, no_cluster
from submarine_jobs.model import (
    KERNEL_ROLE,
    NOTEBOOK_ROLE,
    JobSpec,
    Localization,
    Profile,
    Role,
    Sharing,
    check_image_name,
    fill_spec,
    parse_python_env,
    resolve_roles,
)
from submarine_jobs.options.role_checks import check_image, check_roles
from submarine_jobs.options.roles import (
    TENSORBOARD,
    TENSORBOARD_LINK,
    RoleContext,
    is_only_tensorboard,
    needs_program,
    spec_roles,
)
from submarine_jobs.options.run_options import (
    SEPARATE_FRAMEWORKS,
    SPARK,
    RunOptions,
    check_name,
)
from submarine_jobs.options.spark_options import check_spark, spark_request
from submarine_runtime.frameworks import (
    NOT_COLLECTIVE_ROLES,
    deciding_import,
    framework_projects,
    role_error_of,
    setting_of,
)
from submarine_runtime.protocol import IdleLimit
from submarine_runtime.translation import _

#: Roles whose program waits for a user.
_WAITING_ROLES = frozenset({KERNEL_ROLE, NOTEBOOK_ROLE})
#: Fields of the spec that also depend on the profile, the program, or another option.
_COMPUTED = {
    *("name", "backend", "queue", "roles", "program", "framework", "python_env", "docker_image"),
    "framework_reason",
    *("localization", "quicklinks", "policy", "spark", "stall", "idle_gpu"),
}
_SPEC_FIELDS = {item.name for item in fields(JobSpec)}
#: Options with the name of another field of the spec; it has their value.
COPIED_FIELDS = tuple(
    item.name for item in fields(RunOptions) if item.name in _SPEC_FIELDS - _COMPUTED
)


class Program(Protocol):
    """Data of a bundle that a spec needs; ``program.Bundle`` implements it."""

    @property
    def program(self) -> str:
        """The program file."""

    @property
    def files(self) -> Mapping[str, bytes]:
        """Content of each file by its path in the working directory."""

    @property
    def digest(self) -> str:
        """SHA-256 of the program, hex."""


def check_options(options: RunOptions) -> None:
    """Reject options that are invalid for every cluster and program.

    Raises
    ------
    UsageError
        If options contradict each other.
    """
    if options.name is not None:
        check_name(options.name)
    check_roles(options)
    check_image(options)
    check_spark(options)
    if options.args and not needs_program(options):
        raise UsageError(
            _("Arguments after -- belong to a program, and --worker_launch_cmd replaces it."),
            _("Write them in the command."),
        )
    if options.return_all_ranks and not options.return_names:
        raise UsageError(
            _("--return-all-ranks requires --return."),
            _("Name them, for example --return acc."),
        )
    _check_names(options)
    _check_secrets(options)
    Sharing.of(options.share)
    _check_targets(options)


def spec_from_options(
    options: RunOptions,
    profile: Profile,
    bundle: Program | None,
    *,
    notebook: str | None = None,
) -> JobSpec:
    """Return the spec for ``options``, with placeholders replaced.

    Parameters
    ----------
    bundle
        None: the roles have commands.
    notebook
        Path of the notebook of the program; None if there is none.

    Raises
    ------
    UsageError
        If options contradict each other.
    NoClusterError
        If the profile has no backend.
    """
    check_options(options)
    if profile.backend is None:
        raise no_cluster()
    board = is_only_tensorboard(options, program=bundle is not None)
    runs_program = needs_program(options) and not board
    if runs_program and bundle is None:
        raise UsageError(_("There is no program to run."), _("Name one: submarine run train.py."))
    if bundle is not None:
        _check_overlap(options, bundle)
    python_env, python, image = _environment(options, profile)
    framework, reason = _framework(options, bundle if runs_program else None, image, python)
    own_launcher = _own_launcher(framework, bundle if runs_program else None)
    around = RoleContext(framework, profile.python, own_launcher)
    roles = spec_roles(options, around, program=bundle is not None)
    _check_framework(framework, roles)
    if options.require_collective:
        _check_collective(framework, roles)
    links = dict([TENSORBOARD_LINK] if any(role.name == TENSORBOARD for role in roles) else [])
    spec = JobSpec(
        name=check_name(options.name or ""),
        backend=profile.backend,
        queue=profile.queue,
        roles=roles,
        program=bundle.program if bundle is not None and runs_program else None,
        framework=framework,
        framework_reason=reason,
        python_env=python_env,
        python=python,
        localization=(*options.localization, *options.files),
        quicklinks={**links, **options.quicklinks},
        bundle_digest=bundle.digest if bundle is not None else "",
        notebook=notebook,
        policy=options.policy or ("fraction" if options.allow_failures is not None else None),
        allowed_failures=options.allow_failures or 0.0,
        docker_image=image,
        own_launcher=own_launcher,
        checkpoint_links=_checkpoint_links(bundle if runs_program else None),
        spark=spark_request(options),
        stall=options.stall or default_stall(roles, spark=options.type == SPARK),
        idle_gpu=options.idle_gpu or IdleLimit(),
        **{name: getattr(options, name) for name in COPIED_FIELDS},
    )
    spec = fill_spec(resolve_roles(spec))
    check_idle_gpu(spec.idle_gpu, gpus=any(role.resources.gpus for role in spec.roles))
    _check_shards(spec)
    _check_streams(spec)
    return spec


def check_idle_gpu(limit: IdleLimit | None, *, gpus: bool) -> None:
    """Reject ``--idle-gpu`` for a job that requests no ``gpus``.

    Raises
    ------
    UsageError
        If there is a limit and there are no GPUs.
    """
    if limit is not None and limit.seconds and not gpus:
        raise UsageError(
            _("--idle-gpu needs a job with GPUs, and no role of this one requests any."),
            _("Request GPUs with --gpu N, or leave --idle-gpu out."),
        )


def default_stall(roles: Sequence[Role], *, spark: bool) -> IdleLimit:
    """Return the default of ``--stall``: off where a program waits for a user or for executors."""
    waits = spark or any(role.name in _WAITING_ROLES for role in roles)
    return IdleLimit() if waits else IdleLimit(600.0)


def _framework(
    options: RunOptions, bundle: Program | None, image: str | None, python: str
) -> tuple[str, str]:
    """Return the framework and the reason; ``auto`` is resolved by the imports of the program.

    A library that chooses none may require one in the job's environment.
    """
    if options.framework != "auto":
        return ("any" if options.framework in SEPARATE_FRAMEWORKS else options.framework), ""
    if options.type == SPARK:
        return "any", ""  # Spark distributes the work; a library of the program does not.
    if bundle is None:
        return "auto", ""  # The framework of a command is unknown.
    modules = checks.imported_modules(bundle.files)
    framework, module = deciding_import(modules)
    if module:
        return framework, _("the program imports {module}").format(module=module)
    own = {name.split("/")[0].removesuffix(".py") for name in bundle.files}
    others = modules - own - sys.stdlib_module_names - {"submarine_data", "submarine_runtime"}
    if image is not None or not others:
        return framework, ""
    projects = framework_projects()
    try:
        required = checks.required_projects(python, others, list(projects))
    except checks.InterpreterError as error:
        return framework, _(
            "the requirements of the imports were not read: {python} {error}"
        ).format(python=python, error=error)
    for project, found in projects.items():
        if project in required:
            return found, _("the program imports {module}, which requires {project}").format(
                module=required[project], project=project
            )
    return framework, ""


def _check_collective(framework: str, roles: Sequence[Role]) -> None:
    """Reject ``--require-collective`` for jobs without a rendezvous."""
    training = [
        role for role in roles if role.kind == "tracked" and role.name not in NOT_COLLECTIVE_ROLES
    ]
    processes = sum(role.instances * max(1, role.processes) for role in training)
    if processes < 2 and not any(role.instances > 1 for role in training):
        raise UsageError(
            _(
                "--require-collective needs at least two tasks that train, and this job "
                "has {processes}."
            ).format(processes=processes),
            _("Ask for more with --worker N, or leave --require-collective out."),
        )
    if not setting_of(framework, "RENDEZVOUS"):
        raise UsageError(
            _(
                "--require-collective does not apply to {framework}: its workers have no "
                "rendezvous."
            ).format(framework=framework),
            _("Leave --require-collective out."),
        )


def _own_launcher(framework: str, bundle: Program | None) -> bool:
    """Return whether a library of the program starts the processes of a PyTorch training."""
    if bundle is None or framework != "pytorch":
        return False
    return checks.has_own_launcher(bundle.files)


def _checkpoint_links(bundle: Program | None) -> tuple[str, ...]:
    """Return the directories of a library's checkpoints that are kept."""
    return checks.checkpoint_links(bundle.files) if bundle is not None else ()


def _check_framework(framework: str, roles: Sequence[Role]) -> None:
    gang = [role for role in roles if role.kind != "sidecar"]
    names = [role.name for role in gang for _ in range(role.instances)]
    role_error = role_error_of(framework, names, max(role.processes for role in roles))
    if role_error:
        raise UsageError(role_error)


def _check_shards(spec: JobSpec) -> None:
    """Reject ``:shard`` of unknown roles, and of inputs that no task would receive."""
    names = [role.name for role in spec.roles]
    for item in spec.inputs:
        for role in item.shard_roles:
            if role not in names:
                raise UsageError(
                    _(
                        "--input {name}: :{mode}={role} names no role of this job; it has {names}."
                    ).format(name=item.name, mode=item.word, role=role, names=", ".join(names)),
                    _("Name roles of the job, or write :{mode} alone.").format(mode=item.word),
                )
        if item.shard and not inputs.tasks_sharing(spec, item):
            raise UsageError(
                _(
                    "--input {name}: no task of this job trains, so :{mode} would give its "
                    "files to none."
                ).format(name=item.name, mode=item.word),
                _("Name the roles that share it, for example :{mode}={names}.").format(
                    mode=item.word, names=names[0]
                ),
            )


def _check_streams(spec: JobSpec) -> None:
    """Reject a second stream for standard input, and streams of tasks with several processes."""
    streams = [item for item in spec.inputs if item.mode == "stream"]
    to_stdin = [item.name for item in streams if "to=stdin" in item.options]
    if len(to_stdin) > 1:
        raise UsageError(
            _("--input {first} and --input {second} both have to=stdin.").format(
                first=to_stdin[0], second=to_stdin[1]
            ),
            _("Leave it out of one of them: a named pipe is the default."),
        )
    several = next((role for role in spec.roles if role.processes > 1), None)
    if streams and several is not None:
        raise UsageError(
            _(
                "--input {name}: one process can read a stream, and each task of {role} starts "
                "{count}."
            ).format(name=streams[0].name, role=several.name, count=several.processes),
            _("Use :shard, or submarine_data in the program."),
        )


def _environment(options: RunOptions, profile: Profile) -> tuple[str, str, str | None]:
    """Return the effective ``--python-env``, its interpreter, and the image or None."""
    text, image = profile.python_env, options.docker_image
    if image and options.python_env is None and text == "host":
        # The interpreter of the notebook is not in the image.
        text = f"docker:{image}"
    parsed = parse_python_env(text)
    image = parsed.value if parsed.kind == "docker" else image
    role_images = [check_image_name(role.image) for role in options.roles if role.image]
    if image is not None:
        check_image_name(image)
    if profile.backend == "local" and (image or role_images):
        raise UsageError(
            _(
                "The image {image} needs a cluster: --backend local runs processes of this machine."
            ).format(image=image or role_images[0]),
            _("Leave the image out, or choose another backend."),
        )
    if profile.backend == "local" and parsed.kind == "auto":
        return text, profile.python, None
    return text, python_of(text, profile.python), image


def _check_names(options: RunOptions) -> None:
    """Reject inputs, outputs or parameters with the same variable of the program."""
    inputs = [item.name for item in options.inputs]
    outputs = [item.name for item in options.outputs]
    for option, names, variables in (
        ("--save-output", outputs, [f"SUBMARINE_OUTPUT_{name}" for name in outputs]),
        ("--input", inputs, [f"SUBMARINE_INPUT_{name}" for name in inputs]),
        ("--param", list(options.params), [f"SUBMARINE_PARAM_{n.upper()}" for n in options.params]),
    ):
        taken: dict[str, str] = {}
        for name, variable in zip(names, variables, strict=True):
            if variable in taken:
                raise UsageError(
                    _("{option} {name} and {option} {taken} would both be {variable}.").format(
                        option=option, name=name, taken=taken[variable], variable=variable
                    ),
                    _("Give one of them another name."),
                )
            taken[variable] = name


def _check_secrets(options: RunOptions) -> None:
    """Reject a variable with a value of ``--env`` or of a role, and one of ``--secret``."""
    for name in options.secrets:
        if name in options.env or any(name in role.env for role in options.roles):
            raise UsageError(
                _("--env and --secret both set {name}.").format(name=name),
                _("Give one of them; the job directory holds values of --env readable."),
            )


def _localized(options: RunOptions) -> list[tuple[str, Localization]]:
    """Return all files and archives in the working directory, each with its option."""
    given = (
        ("--localization", options.localization),
        ("--file", options.files),
        ("--archive", options.archives),
    )
    return [(option, item) for option, items in given for item in items]


def _check_targets(options: RunOptions) -> None:
    """Reject files with the same name, and files within another one."""
    taken: list[str] = []
    for option, item in _localized(options):
        target = posixpath.normpath(item.target)
        for other in taken:
            if target == other or (target + "/").startswith(other + "/"):
                raise UsageError(
                    _("{option} puts two things at {target}.").format(
                        option=option, target=target[:80]
                    )
                )
            if (other + "/").startswith(target + "/"):
                raise UsageError(
                    _("{option} puts {other} into {target}.").format(
                        option=option, other=other[:80], target=target[:80]
                    )
                )
        taken.append(target)


def _check_overlap(options: RunOptions, bundle: Program) -> None:
    """Reject files that would replace a file of the program."""
    for option, item in _localized(options):
        for name in bundle.files:
            if name == item.target or name.startswith(item.target + "/"):
                raise UsageError(
                    _("{option} {source}: {name} is a file of the program itself.").format(
                        option=option, source=item.source, name=name
                    ),
                    _("Choose another TARGET."),
                )
