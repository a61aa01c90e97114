"""Format options and specs as command lines.

The command line of a spec is not complete if options cannot express it: values of ``--with``, or
cells of an unsaved notebook. ``rerun`` repeats a job exactly.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from submarine_jobs.model import (
    TENSORBOARD_COMMAND,
    JobSpec,
    Role,
    default_kind,
    format_duration,
    format_memory,
    format_timeout,
)
from submarine_jobs.options.option_values import (
    format_input,
    format_localization,
    format_pair,
    format_param,
    format_target,
)
from submarine_jobs.options.role_options import RoleOptions, format_role
from submarine_jobs.options.roles import TENSORBOARD, TENSORBOARD_LINK
from submarine_jobs.options.run_options import RunOptions

#: Field of RunOptions -> option and what writes one value; in the order of the help.
_SINGLE: dict[str, tuple[str, Callable[[Any], str]]] = {
    "memory": ("--memory", format_memory),
    "vcores": ("--vcores", str),
    "gpus": ("--gpu", str),
    "processes": ("--processes", str),
    "min_workers": ("--min-workers", str),
    "gang_timeout": ("--gang-timeout", format_timeout),
    "gang_retries": ("--gang-retries", str),
    "max_restarts": ("--max-restarts", str),
    "policy": ("--policy", str),
    "allow_failures": ("--allow-failures", repr),
    "heartbeat": ("--heartbeat", format_duration),
    "lost_after": ("--lost-after", format_duration),
    "timeout": ("--timeout", format_duration),
    "input_path": ("--input_path", str),
    "checkpoint_path": ("--checkpoint_path", str),
    "saved_model_path": ("--saved_model_path", str),
    "resume": ("--resume", str),
    "restore": ("--restore", str),
    "python_env": ("--python-env", str),
    "docker_image": ("--docker_image", str),
    "queue": ("--queue", str),
    "priority": ("--priority", str),
    "node_label": ("--node-label", str),
    "network_interface": ("--network-interface", str),
    "profile": ("--profile", str),
    "backend": ("--backend", str),
}
_LISTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "inputs": ("--input", format_input),
    "localization": ("--localization", format_localization),
    "files": ("--file", format_target),
    "archives": ("--archive", format_target),
    "nodes": ("--node", str),
    "racks": ("--rack", str),
    "avoid_nodes": ("--avoid-node", str),
    "keep": ("--keep", str),
}
_PAIRS: dict[str, tuple[str, Callable[[str, Any], str]]] = {
    "params": ("--param", format_param),
    "env": ("--env", format_pair),
    "quicklinks": ("--quicklink", format_pair),
    "settings": ("--conf", format_pair),
}
_FLAGS = ("spread", "require_collective", "return_all_ranks", "wait", "verbose", "dry_run", "force")


def to_argv(options: RunOptions) -> list[str]:
    """The words after ``run`` that mean ``options``, in their canonical form.

    A value stands in one word with its option, since it may itself begin with a dash.
    """
    words = [f"{option}={value}" for option, value in _values(options)]
    words += [f"--{flag.replace('_', '-')}" for flag in _FLAGS if getattr(options, flag)]
    if options.on_interrupt != "detach":
        words.append(f"--on-interrupt={options.on_interrupt}")
    return [*words, "--", *options.args] if options.args else words


def _values(options: RunOptions) -> Iterator[tuple[str, str]]:
    for key in ("name", "program"):
        if getattr(options, key) is not None:
            yield f"--{key}", getattr(options, key)
    if options.framework != "auto":
        yield "--framework", options.framework
    for role in options.roles:
        yield _role_words(role)
    for key, (option, write) in _SINGLE.items():
        value = getattr(options, key)
        if value is not None:
            yield option, write(value)
    for key, (option, write) in _LISTS.items():
        for item in getattr(options, key):
            yield option, write(item)
    for key, (option, pair) in _PAIRS.items():
        for name, value in getattr(options, key).items():
            yield option, pair(name, value)
    for option, names in (("--with", options.with_names), ("--return", options.return_names)):
        if names:
            yield option, ",".join(names)


def _role_words(role: RoleOptions) -> tuple[str, str]:
    """``--worker 4`` where that says all, else ``--role``."""
    plain = role.instances is not None and role == RoleOptions(role.name, role.instances)
    if plain and role.name in ("worker", "ps", "chief", "evaluator"):
        return f"--{role.name}", str(role.instances)
    return "--role", format_role(role)


def command_of_spec(spec: JobSpec) -> str:
    """``submarine run --name=digits ...``, ready for a shell."""
    return shlex.join(["submarine", "run", *to_argv(options_of(spec))])


def options_of(spec: JobSpec) -> RunOptions:
    """The options that ask for ``spec``; defaults of a role's size are spelled out."""
    links = {name: url for name, url in spec.quicklinks.items() if (name, url) != TENSORBOARD_LINK}
    image = spec.docker_image if spec.python_env != f"docker:{spec.docker_image}" else None
    return RunOptions(
        name=spec.name,
        program=(spec.notebook or spec.program) if spec.program else None,
        args=spec.args,
        framework=spec.framework,
        queue=spec.queue,
        backend=spec.backend,
        python_env=spec.python_env if spec.python_env != "host" else None,
        docker_image=image,
        quicklinks=links,
        resume=spec.resume_from,
        restore=spec.restore,
        policy=spec.policy,
        allow_failures=spec.allowed_failures or None,
        **_sizes(spec),
        **{
            name: getattr(spec, name)
            for name in (
                *("env", "input_path", "checkpoint_path", "saved_model_path", "localization"),
                *("timeout", "with_names", "return_names", "archives", "inputs", "params"),
                *("max_restarts", "gang_timeout", "gang_retries", "heartbeat", "lost_after"),
                *(
                    "priority",
                    "network_interface",
                    "require_collective",
                    "return_all_ranks",
                    "keep",
                ),
            )
        },
    )


def _sizes(spec: JobSpec) -> dict[str, Any]:
    """Size and place of an only worker as options of their own, else a ``--role`` each."""
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
