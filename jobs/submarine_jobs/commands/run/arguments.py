"""Combine the parsed parameters of ``run`` to options; refuse contradictions."""

from __future__ import annotations

from typing import Any

from submarine_jobs.commands.grammar import printable
from submarine_jobs.errors import UsageError
from submarine_jobs.options import (
    ROLE_OPTIONS,
    RUN_OPTIONS,
    RoleOptions,
    RunOptions,
    merge_resources,
    merge_roles,
)
from submarine_runtime.translation import _

_FILES = (".py", ".ipynb")


def options_of(typed: dict[str, Any], program_args: tuple[str, ...]) -> RunOptions:
    """Return the options of parsed parameters; raise UsageError for contradictions."""
    name, program = _name_and_program(typed["target"], typed["name"], typed["program"])
    given = {
        parameter: option.collect(typed[parameter])
        for parameter, option in RUN_OPTIONS.items()
        if typed[parameter] is not None
    }
    if "args" in given and program_args:
        raise UsageError(
            _("Arguments are given twice, by --args and after --."), _("Give one of them.")
        )
    amounts = merge_resources(
        given.pop("worker_resources", {}),
        {key: given.pop(key, None) for key in ("memory", "vcores", "gpus")},
    )
    roles = _roles({key: given.pop(key) for key in ROLE_OPTIONS if key in given})
    given.setdefault("args", program_args)
    return RunOptions(**{**given, **amounts, "name": name, "program": program, "roles": roles})


def _roles(given: dict[str, Any]) -> tuple[RoleOptions, ...]:
    """Merge the options of each role: ``--ps 2 --ps_resources memory=4G`` is one role."""
    several = given.pop("roles")
    if given.pop("tensorboard"):
        given["tensorboard"] = RoleOptions("tensorboard", 1)
    return merge_roles([*given.values(), *several])


def _name_and_program(
    target: str | None, name: str | None, program: str | None
) -> tuple[str | None, str | None]:
    """Return name and program; ``target`` is a program if it ends like a file, else a name."""
    if target is None:
        return name, program
    if target.lower().endswith(_FILES):
        if program is not None and program != target:
            raise UsageError(
                _("Two programs are named: {target} and {program}.").format(
                    target=printable(target), program=printable(program)
                ),
                _("Name one."),
            )
        return name, target
    if name is not None and name != target:
        raise UsageError(
            _("Two names are given: {target} and {name}.").format(
                target=printable(target), name=printable(name)
            ),
            _("Give one."),
        )
    return target, program
