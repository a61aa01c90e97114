"""The click options of ``run``, derived from their declarations in ``submarine_jobs.options``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import (
    Callback,
    ParsedType,
    backend_option,
    complete_jobs,
    complete_programs,
    complete_queues,
    option,
    profile_option,
)
from submarine_jobs.options import RUN_OPTIONS, TEXT, Flag, ListOption, Option, ValueType

#: Options of all commands, which the grammar declares.
_SHARED = {"profile": profile_option, "backend": backend_option}
_COMPLETIONS = {"jobs": complete_jobs, "programs": complete_programs, "queues": complete_queues}


class DeclaredType(ParsedType):
    """The click type of a ``ValueType``."""

    def __init__(self, declared: ValueType) -> None:
        super().__init__(declared.name, declared.parse, prefix=declared.prefix)
        self._declared = declared

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the completions of the declaration."""
        return [CompletionItem(word) for word in self._declared.complete(incomplete)]


def click_type(declared: ValueType) -> click.ParamType[Any]:
    """Return the click type of a declared type."""
    if declared is TEXT:
        return click.STRING
    if declared.choices:
        return click.Choice(declared.choices, case_sensitive=not declared.ignore_case)
    return DeclaredType(declared)


def declared_option(
    parameter: str, declared: Option, **changes: Any
) -> Callable[[Callback], Callback]:
    """Return a decorator that adds a declared option to a command.

    Parameters
    ----------
    changes
        Attributes of ``click.Option`` that are not as declared.
    """
    if parameter in _SHARED:
        return _SHARED[parameter]
    attributes: dict[str, Any] = {
        "aliases": declared.aliases,
        "heading": declared.heading,
        "help": declared.help,
        "in_help": declared.in_help,
    }
    if isinstance(declared, Flag):
        attributes["is_flag"] = True
    else:
        attributes.update(
            type=click_type(declared.type),
            metavar=declared.metavar,
            multiple=isinstance(declared, ListOption),
            shell_complete=_COMPLETIONS.get(declared.completion),
        )
    return option(declared.name, parameter, **{**attributes, **changes})


def run_option(parameter: str, **changes: Any) -> Callable[[Callback], Callback]:
    """Return a decorator for an option of ``run`` in another command; see ``declared_option``."""
    return declared_option(parameter, RUN_OPTIONS[parameter], **changes)


def all_run_options() -> Callable[[Callback], Callback]:
    """Return a decorator that adds all options of a job to ``run``."""
    decorators, heading = [], ""
    for parameter, declared in RUN_OPTIONS.items():
        heading = declared.heading or heading
        decorators.append(declared_option(parameter, declared, heading=heading))
    return together(decorators)


def together(options: Sequence[Callable[[Callback], Callback]]) -> Callable[[Callback], Callback]:
    """Return one decorator for several, in the order of the help."""

    def decorate(command: Callback) -> Callback:
        for single in reversed(options):
            command = single(command)
        return command

    return decorate
