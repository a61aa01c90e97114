"""From parsed options back to words, so that a request can be shown and repeated; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from submarine_jobs.model import format_duration, format_memory, format_patience
from submarine_jobs.options.data_pairs import format_input, format_param, format_target
from submarine_jobs.options.pairs import format_localization, format_pair
from submarine_jobs.options.role_options import RoleOptions, format_role
from submarine_jobs.options.run_options import RunOptions

#: Field of RunOptions -> option and what writes one value; in the order of the help.
_SINGLE: dict[str, tuple[str, Callable[[Any], str]]] = {
    "memory": ("--memory", format_memory),
    "vcores": ("--vcores", str),
    "gpus": ("--gpu", str),
    "processes": ("--processes", str),
    "min_workers": ("--min-workers", str),
    "gang_timeout": ("--gang-timeout", format_patience),
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
        yield _role(role)
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


def _role(role: RoleOptions) -> tuple[str, str]:
    """``--worker 4`` where that says all, else ``--role``."""
    plain = role.instances is not None and role == RoleOptions(role.name, role.instances)
    if plain and role.name in ("worker", "ps", "chief", "evaluator"):
        return f"--{role.name}", str(role.instances)
    return "--role", format_role(role)
