"""Declare an option once, as the metadata of the dataclass field that contains its value.

The command line (``commands.run.declared_options``), its help and completion, the words of
``--role``, the conversion to arguments and the checks of the documentation read the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ParamSpec

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

_KEY = "option"
_Parameters = ParamSpec("_Parameters")


def _no_words(_text: str, /) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class ValueType:
    """How a value is parsed and formatted; ``parse(format(value))`` is ``value``.

    Parameters
    ----------
    name
        The kind of value.
    parse
        Raises ``UsageError`` for an invalid text.
    complete
        Returns completions of a text.
    choices
        If not empty, no other texts are valid, and ``parse`` is not used.
    ignore_case
        Whether ``choices`` are valid in upper and lower case.
    prefix
        Whether the name of the option is added to errors of ``parse``.
    """

    name: str
    parse: Callable[[str], Any] = str
    format: Callable[[Any], str] = str
    complete: Callable[[str], Iterable[str]] = _no_words
    choices: Sequence[str] = ()
    ignore_case: bool = False
    prefix: bool = False


TEXT = ValueType("text")


@dataclass(frozen=True)
class Option:
    """An option with one value.

    Parameters
    ----------
    name
        ``--memory``, or a word of ``--role``.
    aliases
        Other names; names with ``-`` and ``_`` are equal.
    help
        One sentence, with the default in brackets.
    heading
        Section of the help. It also applies to the options that follow.
    completion
        What completes the value, if ``type`` does not: ``jobs``, ``programs`` or ``queues``.
    in_help
        False: the option is completed, but omitted in the help.
    default
        Value of the field if the option is not given.
    """

    name: str
    type: ValueType = TEXT
    help: str = ""
    metavar: str | None = None
    heading: str = ""
    aliases: tuple[str, ...] = ()
    completion: str = ""
    in_help: bool = True
    default: Any = None

    def collect(self, given: Any) -> Any:
        """Return the value of the field for the parsed value, or values if it is repeatable."""
        return given

    def format(self, value: Any) -> list[str]:
        """Return the texts that give ``value``, one for each time that the option is written."""
        return [] if value == self.default else [self.type.format(value)]


@dataclass(frozen=True)
class Flag(Option):
    """An option without a value."""

    default: bool = False


@dataclass(frozen=True)
class ListOption(Option):
    """A repeatable option; a value that is given twice counts once."""

    default: tuple[Any, ...] = ()

    def collect(self, given: Iterable[Any]) -> tuple[Any, ...]:
        """See ``Option``."""
        return tuple(dict.fromkeys(given))

    def format(self, value: Iterable[Any]) -> list[str]:
        """See ``Option``."""
        return [self.type.format(item) for item in value]


@dataclass(frozen=True)
class NamesOption(ListOption):
    """A repeatable option with several names in each value: ``x,y``."""

    def collect(self, given: Iterable[Any]) -> tuple[Any, ...]:
        """See ``Option``."""
        return super().collect(name for names in given for name in names)

    def format(self, value: Iterable[Any]) -> list[str]:
        """See ``Option``."""
        return [self.type.format(value)] if value else []


@dataclass(frozen=True)
class PairsOption(ListOption):
    """A repeatable option ``NAME=VALUE``; its field is a mapping."""

    def collect(self, given: Iterable[Any]) -> Any:
        """See ``Option``."""
        return unique_pairs(given, self.name)

    def format(self, value: Any) -> list[str]:
        """See ``Option``."""
        return super().format(value.items())


def unique_pairs(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Return a mapping of ``pairs``.

    Raises
    ------
    UsageError
        If a name is given twice with different values.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise UsageError(
                _("{option} gives {name} twice, with different values.").format(
                    option=option, name=name
                )
            )
    return found


def _declares(kind: Callable[_Parameters, Option]) -> Callable[_Parameters, Any]:
    """Return a function that declares the option of a dataclass field."""

    def declare(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        found = kind(*args, **kwargs)
        if isinstance(found, PairsOption):
            return field(default_factory=dict, metadata={_KEY: found})
        return field(default=found.default, metadata={_KEY: found})

    return declare


#: ``memory: int | None = option("--memory", MEMORY, help=...)`` in the body of a dataclass.
option = _declares(Option)
flag = _declares(Flag)
option_list = _declares(ListOption)
option_names = _declares(NamesOption)
option_pairs = _declares(PairsOption)


def declared(owner: type) -> Mapping[str, Option]:
    """Return the options that a dataclass declares, by field."""
    return {item.name: item.metadata[_KEY] for item in fields(owner) if _KEY in item.metadata}
