"""Combine the parsed parameters of ``run`` to options; refuse contradictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from submarine_jobs.commands.grammar import printable
from submarine_jobs.commands.run.role_options import SUBMARINE_ROLES
from submarine_jobs.errors import UsageError
from submarine_jobs.options import (
    RoleOptions,
    RunOptions,
    merge_resources,
    merge_roles,
    split_args,
    unique_pairs,
)

_FILES = (".py", ".ipynb")


def options_of(typed: dict[str, Any], program_args: tuple[str, ...]) -> RunOptions:
    """Return the options of parsed parameters; raise UsageError for contradictions."""
    options = dict(typed)
    name, program = _name_and_program(options.pop("target"), options["name"], options["program"])
    text = options.pop("args_text")
    if text is not None and program_args:
        raise UsageError("Arguments are given twice, by --args and after --.", "Give one of them.")
    amounts = merge_resources(
        options.pop("worker_resources") or {},
        {key: options.pop(key) for key in ("memory", "vcores", "gpus")},
    )
    roles = merge_roles([*_usual_roles(options), *options.pop("role_texts")])
    for key in ("with_names", "return_names"):
        options[key] = tuple(dict.fromkeys(word for words in options[key] for word in words))
    for key in ("localization", "inputs", "nodes", "racks", "avoid_nodes", "keep"):
        options[key] = tuple(dict.fromkeys(options[key]))
    options.update(
        name=name,
        program=program,
        args=split_args(text) if text is not None else program_args,
        roles=roles,
        files=tuple(dict.fromkeys(options.pop("file"))),
        archives=tuple(dict.fromkeys(options.pop("archive"))),
        params=unique_pairs(options.pop("param"), "--param"),
        env=unique_pairs(options.pop("env"), "--env"),
        quicklinks=unique_pairs(options.pop("quicklink"), "--quicklink"),
        settings=unique_pairs(options.pop("conf"), "--conf"),
        **amounts,
    )
    return RunOptions(**options)


def _usual_roles(options: dict[str, Any]) -> Iterator[RoleOptions]:
    """Yield the roles of ``--ps 2 --ps_resources memory=4G`` and similar; remove these options."""
    for name in SUBMARINE_ROLES:
        size = {} if name == "worker" else options.pop(f"{name}_resources") or {}
        role = RoleOptions(
            name,
            options.pop(f"{name}_count"),
            **size,
            image=options.pop(f"{name}_docker_image"),
            command=options.pop(f"{name}_launch_cmd"),
        )
        if role != RoleOptions(name):
            yield role
    size = options.pop("tensorboard_resources")
    image = options.pop("tensorboard_docker_image")
    if options.pop("tensorboard") or size or image:
        yield RoleOptions("tensorboard", 1, **(size or {}), image=image)


def _name_and_program(
    target: str | None, name: str | None, program: str | None
) -> tuple[str | None, str | None]:
    """Return name and program; ``target`` is a program if it ends like a file, else a name."""
    if target is None:
        return name, program
    if target.lower().endswith(_FILES):
        if program is not None and program != target:
            raise UsageError(
                f"Two programs are named: {printable(target)} and {printable(program)}.",
                "Name one.",
            )
        return name, target
    if name is not None and name != target:
        raise UsageError(
            f"Two names are given: {printable(target)} and {printable(name)}.", "Give one."
        )
    return target, program
