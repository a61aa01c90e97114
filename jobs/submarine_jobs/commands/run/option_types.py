"""Types of the options of ``run``: parse and complete their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import click
from click.shell_completion import CompletionItem

from submarine_jobs import outputs
from submarine_jobs.commands.grammar import Callback, ParsedType
from submarine_jobs.errors import UsageError
from submarine_jobs.model import (
    ENVIRONMENT_KINDS as ENVIRONMENTS,
    KINDS,
    parse_count,
    parse_duration,
    parse_memory,
    parse_resources,
    parse_timeout,
)
from submarine_jobs.options import (
    ROLE_FLAGS,
    ROLE_WORDS,
    STANDARD_ROLES,
    check_command,
    check_python_env,
    parse_archive,
    parse_conf,
    parse_env,
    parse_file,
    parse_fraction,
    parse_input,
    parse_localization,
    parse_param,
    parse_quicklink,
    parse_role,
)

_PLACE = re.compile(r"^[^\s,'\"\x00-\x1f]{1,255}\Z")
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@,-]{1,64}\Z")
_VALUED_ENVIRONMENTS = tuple(
    kind if kind in ("auto", "host") else f"{kind}:" for kind in ENVIRONMENTS
)


def count(what: str, minimum: int = 0) -> ParsedType:
    """Return the type of a whole number; ``what`` names it in errors."""
    return ParsedType("number", lambda text: parse_count(text, what, minimum))


def place(what: str) -> ParsedType:
    """Return the type of the name of a node, a rack or a label."""

    def parse(text: str) -> str:
        if not _PLACE.match(text):
            raise UsageError(f"{text[:40]!r} is not {what}.")
        return text

    return ParsedType("name", parse)


def _interface(text: str) -> str:
    if not _INTERFACE.match(text):
        raise UsageError(f"{text[:40]!r} is not a network interface.", "Write for example eth0.")
    return text


def _names(name: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        return outputs.parse_names(text, name)

    return parse


class RoleText(ParsedType):
    """The type of ``--role``, which completes standard roles and their settings."""

    def __init__(self) -> None:
        super().__init__("role", parse_role, prefix=False)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names before the first comma, then settings and the values of ``kind``."""
        before, comma, last = incomplete.rpartition(",")
        start = before + comma
        if not comma:
            words = [f"{name}=" for name in STANDARD_ROLES]
        elif last.startswith("kind="):
            words = [f"kind={kind}" for kind in KINDS]
        else:
            words = [*(f"{word}=" for word in ROLE_WORDS), *ROLE_FLAGS]
        return [CompletionItem(start + word) for word in words if word.startswith(last)]


def _keep(text: str) -> str:
    pattern = text.removeprefix("./").rstrip("/")
    outside = pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "://" in pattern
    if not pattern or not pattern.isprintable() or len(pattern) > 500 or outside:
        raise UsageError(
            f"{text[:60]!r} is not a pattern of files in the program's working directory.",
            "Write it relative to that directory, for example 'runs/*' or my_model.keras.",
        )
    return pattern


MEMORY = ParsedType("size", parse_memory)
RESOURCES = ParsedType("resources", parse_resources)
DURATION = ParsedType("time", parse_duration)
PATIENCE = ParsedType("time", parse_timeout, choices=("never",))
FRACTION = ParsedType("fraction", parse_fraction)
KEEP = ParsedType("pattern", _keep)
INTERFACE = ParsedType("interface", _interface)
COMMAND = ParsedType("command", lambda text: check_command(text, "The role"))
PYTHON_ENV = ParsedType("env", check_python_env, prefix=False, choices=_VALUED_ENVIRONMENTS)
ROLE = RoleText()
ENV = ParsedType("pair", parse_env, prefix=False)
QUICKLINK = ParsedType("pair", parse_quicklink, prefix=False)
CONF = ParsedType("pair", parse_conf, prefix=False)
LOCALIZATION = ParsedType("localization", parse_localization, prefix=False)
FILE = ParsedType("file", parse_file, prefix=False)
ARCHIVE = ParsedType("archive", parse_archive, prefix=False)
INPUT = ParsedType("input", parse_input, prefix=False)
PARAM = ParsedType("pair", parse_param, prefix=False)
WITH = ParsedType("names", _names("--with"), prefix=False)
RETURN = ParsedType("names", _names("--return"), prefix=False)


def together(options: Sequence[Callable[[Callback], Callback]]) -> Callable[[Callback], Callback]:
    """Return one decorator for several, in the order of the help."""

    def decorate(command: Callback) -> Callback:
        for single in reversed(options):
            command = single(command)
        return command

    return decorate
