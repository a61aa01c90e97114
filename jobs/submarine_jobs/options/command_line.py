"""Format options and specs as command lines.

Options do not express all of a spec: values of ``--with``, and cells of an unsaved notebook, are
missing. ``rerun`` repeats a job exactly.
"""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import Any

from submarine_jobs.model import TENSORBOARD_COMMAND, JobSpec, Role, default_kind
from submarine_jobs.options.declaration import Flag, Option, declared
from submarine_jobs.options.role_options import RoleOptions, format_role
from submarine_jobs.options.roles import TENSORBOARD, TENSORBOARD_LINK
from submarine_jobs.options.run_options import RunOptions
from submarine_jobs.options.spark_options import spark_options
from submarine_jobs.options.spec import COPIED_FIELDS, default_stall
from submarine_runtime.protocol import IdleLimit

_OPTIONS = declared(RunOptions)


def to_argv(options: RunOptions) -> list[str]:
    """Return the words after ``run`` that mean ``options``, in the order of the help.

    A value is in one word with its option, because it may begin with a dash.
    """
    words: list[str] = []
    for item in fields(options):
        value = getattr(options, item.name)
        if item.name == "roles":
            words += ["=".join(_role_words(role)) for role in value]
        elif item.name != "args":
            words += _words(_OPTIONS[item.name], value)
    return [*words, "--", *options.args] if options.args else words


def _words(option: Option, value: Any) -> list[str]:
    if isinstance(option, Flag):
        return [option.name] if value else []
    return [f"{option.name}={text}" for text in option.format(value)]


def _role_words(role: RoleOptions) -> tuple[str, str]:
    """Return ``--worker`` if the role has only a number, else ``--role``; and the value."""
    plain = role.instances is not None and role == RoleOptions(role.name, role.instances)
    if plain and role.name in ("worker", "ps", "chief", "evaluator"):
        return f"--{role.name}", str(role.instances)
    return "--role", format_role(role)


def command_of_spec(spec: JobSpec) -> str:
    """Return the command line of a spec, quoted for a shell."""
    return shlex.join(["submarine", "run", *to_argv(options_of(spec))])


def options_of(spec: JobSpec) -> RunOptions:
    """Return the options of ``spec``; the sizes of roles are explicit."""
    links = {name: url for name, url in spec.quicklinks.items() if (name, url) != TENSORBOARD_LINK}
    image = spec.docker_image if spec.python_env != f"docker:{spec.docker_image}" else None
    return RunOptions(
        name=spec.name,
        program=(spec.notebook or spec.program) if spec.program else None,
        framework=spec.framework if spec.spark is None else "auto",
        queue=spec.queue,
        backend=spec.backend,
        python_env=spec.python_env if spec.python_env != "host" else None,
        docker_image=image,
        localization=spec.localization,
        quicklinks=links,
        policy=spec.policy,
        allow_failures=spec.allowed_failures or None,
        stall=spec.stall if spec.stall != _default_stall(spec) else None,
        idle_gpu=spec.idle_gpu if spec.idle_gpu.seconds else None,
        **spark_options(spec.spark),
        **_sizes(spec),
        **{name: getattr(spec, name) for name in COPIED_FIELDS},
    )


def _default_stall(spec: JobSpec) -> IdleLimit:
    return default_stall(spec.roles, spark=spec.spark is not None)


def _sizes(spec: JobSpec) -> dict[str, Any]:
    """Return the size of a single worker as separate options, else a ``--role`` for each role."""
    if len(spec.roles) > 1 or spec.roles[0].name != "worker" or spec.roles[0].instances > 1:
        return {"roles": tuple(_role(role) for role in spec.roles)}
    role, size = spec.roles[0], spec.roles[0].resources
    plain = Role(resources=size)
    found: dict[str, Any] = {
        "memory": size.memory,
        "vcores": size.vcores,
        "gpus": size.gpus or None,
    }
    return found if role == plain else {"roles": (_role(role),)}


def _role(role: Role) -> RoleOptions:
    board = role.name == TENSORBOARD and (role.command or "").startswith(TENSORBOARD_COMMAND)
    return RoleOptions(
        name=role.name,
        instances=role.instances,
        memory=role.resources.memory,
        vcores=role.resources.vcores,
        gpus=role.resources.gpus or None,
        env=dict(role.env),
        kind=role.kind if role.kind != default_kind(role.name) else None,
        least=role.least,
        after=role.after,
        label=role.node_label,
        nodes=role.nodes,
        racks=role.racks,
        avoid=role.avoid,
        relax=role.relax,
        spread=role.spread,
        processes=role.processes or None,
        python_env=role.python_env,
        image=role.docker_image if role.python_env != f"docker:{role.docker_image}" else None,
        command=None if board else role.command,
    )
