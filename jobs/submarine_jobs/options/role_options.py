"""Parse, merge and format the options of a role: ``--role NAME=N,memory=4G,...``.

Defaults are filled in by ``roles``, contradictions between roles are rejected by ``role_checks``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import KINDS, format_memory, parse_count, parse_resources
from submarine_jobs.options.declaration import (
    TEXT,
    Flag,
    ListOption,
    Option,
    PairsOption,
    ValueType,
    declared,
    flag,
    option,
    option_list,
    option_pairs,
)
from submarine_jobs.options.option_values import COMMAND, ENV, MEMORY, PYTHON_ENV, choice, count
from submarine_runtime.translation import _, gettext_noop

#: Roles with options of their own, in the order in which a job lists its roles.
STANDARD_ROLES = ("chief", "master", "worker", "ps", "evaluator", "tensorboard")
NAME = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PLAIN = re.compile(r"^[^\s,'\"]{1,255}\Z")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=(?=[\"'])")
_EXAMPLE = gettext_noop("Write for example --role reader=2,memory=4G,cmd=python read.py.")


def _plain(word: str) -> ValueType:
    """Return the type of a value without spaces, commas and quotes."""

    def parse(text: str) -> str:
        if not _PLAIN.match(text) or not text.isprintable():
            raise UsageError(
                _("{word}={text!r} cannot be right.").format(word=word, text=text[:40]),
                _(_EXAMPLE),
            )
        return text

    return ValueType("name", parse)


@dataclass(frozen=True)
class RoleOptions:
    """Options of one role; None or empty: not given.

    Parameters
    ----------
    memory
        MiB.
    least
        Minimum number of instances to start.
    """

    name: str
    instances: int | None = None
    memory: int | None = option("memory", MEMORY)
    vcores: int | None = option("vcores", count("vcores", 1), aliases=("vcore",))
    gpus: int | None = option(
        "gpu", count("gpu"), aliases=("gpus", "yarn.io/gpu", "nvidia.com/gpu")
    )
    env: Mapping[str, str] = option_pairs("env", ENV)
    kind: str | None = option("kind", choice(KINDS))
    least: int | None = option("min", count("min", 1))
    after: tuple[str, ...] = option_list("after", _plain("after"))
    label: str | None = option("label", _plain("label"), aliases=("node-label", "node_label"))
    nodes: tuple[str, ...] = option_list("node", _plain("node"))
    racks: tuple[str, ...] = option_list("rack", _plain("rack"))
    avoid: tuple[str, ...] = option_list(
        "avoid", _plain("avoid"), aliases=("avoid-node", "avoid_node")
    )
    processes: int | None = option("processes", count("processes", 1))
    python_env: str | None = option("python-env", PYTHON_ENV, aliases=("python_env",))
    image: str | None = option("image", _plain("image"), aliases=("docker_image",))
    spread: bool = flag("spread")
    relax: bool = flag("relax")
    command: str | None = option("cmd", COMMAND, aliases=("launch_cmd",))

    @property
    def count(self) -> int:
        """Number of instances; a role without a number has one."""
        return 1 if self.instances is None else self.instances


_OPTIONS = declared(RoleOptions)
#: Word of ``--role``, in each spelling -> field.
_FIELDS = {word: name for name, item in _OPTIONS.items() for word in (item.name, *item.aliases)}
ROLE_FLAGS = tuple(item.name for item in _OPTIONS.values() if isinstance(item, Flag))
ROLE_WORDS = tuple(item.name for item in _OPTIONS.values() if item.name not in ROLE_FLAGS)
#: Words that take the rest of the text as their value.
_LAST = (_OPTIONS["command"].name, *_OPTIONS["command"].aliases)


def parse_role(text: str) -> RoleOptions:
    """Parse ``NAME[=N][,WORD=VALUE...]``; ``cmd=`` takes the rest unless it is quoted.

    Raises
    ------
    UsageError
        If name or number are invalid, or a word is unknown or given twice.
    """
    head, parts = split_parts(text)
    name, equals, number = head.partition("=")
    if not NAME.match(name):
        raise UsageError(
            _(
                "--role {text!r}: {name!r} cannot be a role's name (lower-case letters, "
                "digits and _)."
            ).format(text=text[:60], name=name[:40]),
            _(_EXAMPLE),
        )
    values: dict[str, Any] = {"name": name}
    if equals:
        values["instances"] = parse_count(number, _("The number of {role} tasks").format(role=name))
    for word, value in parts:
        _take(values, name, word.lower(), value)
    return RoleOptions(**values)


def _take(values: dict[str, Any], role: str, word: str, value: str | None) -> None:
    where = f"--role {role}"
    key = _FIELDS.get(word, "")
    declaration = _OPTIONS.get(key)
    if declaration is None or (value is None) != isinstance(declaration, Flag):
        words = ", ".join((*ROLE_WORDS, *ROLE_FLAGS))
        shown = word if value is None else f"{word}={value}"
        raise UsageError(
            _("{where}: {shown!r} is not known there.").format(where=where, shown=shown[:40]),
            _("It takes {words}.").format(words=words),
        )
    parsed: Any = True if value is None else _parse(where, declaration, value)
    if isinstance(declaration, PairsOption):
        values[key] = _with_pair(values.get(key, {}), parsed, where)
    elif isinstance(declaration, ListOption):
        values[key] = declaration.collect((*values.get(key, ()), parsed))
    elif values.setdefault(key, parsed) != parsed:
        raise UsageError(
            _("{where} gives {name} twice, with different values.").format(
                where=where, name=declaration.name
            )
        )


def _with_pair(env: Mapping[str, str], pair: tuple[str, str], where: str) -> dict[str, str]:
    name, value = pair
    if env.get(name, value) != value:
        raise UsageError(
            _("{where} gives env {name} twice, with different values.").format(
                where=where, name=name
            )
        )
    return {**env, name: value}


def _parse(where: str, declaration: Option, value: str) -> Any:
    choices = declaration.type.choices
    if choices and value not in choices:
        raise UsageError(
            _("{where}: {name} cannot be {value!r};").format(
                where=where, name=declaration.name, value=value[:40]
            ),
            _("one of {choices}.").format(choices=", ".join(choices)),
        )
    try:
        return declaration.type.parse(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.fix) from None


def format_role(role: RoleOptions) -> str:
    """Return the text of ``--role`` for ``role``, the inverse of ``parse_role``."""
    words = [role.name if role.instances is None else f"{role.name}={role.instances}"]
    for key, declaration in _OPTIONS.items():
        value = getattr(role, key)
        if isinstance(declaration, Flag):
            words += [declaration.name] if value else []
            continue
        for text in declaration.format(value):
            # The command is the last word. It needs no quotes, unless it begins with one.
            raw = key == "command" and text[:1] not in "'\""
            words.append(f"{declaration.name}={text if raw else quote_value(text)}")
    return ",".join(words)


def complete_role(start: str) -> list[str]:
    """Complete names before the first comma, then words and the values of ``kind``."""
    before, comma, last = start.rpartition(",")
    word, equals, _value = last.partition("=")
    if not comma:
        words = [f"{name}=" for name in STANDARD_ROLES]
    elif equals:
        declaration = _OPTIONS.get(_FIELDS.get(word, ""))
        words = [f"{word}={text}" for text in declaration.type.choices] if declaration else []
    else:
        words = [*(f"{word}=" for word in ROLE_WORDS), *ROLE_FLAGS]
    return [before + comma + text for text in words if text.startswith(last)]


def merge_roles(roles: Iterable[RoleOptions]) -> tuple[RoleOptions, ...]:
    """Merge the options of each role, standard roles first.

    Raises
    ------
    UsageError
        If options of a role contradict each other.
    """
    found: dict[str, RoleOptions] = {}
    for role in roles:
        found[role.name] = _merged(found[role.name], role) if role.name in found else role
    usual = [found.pop(name) for name in STANDARD_ROLES[:-1] if name in found]
    last = [found.pop(name) for name in STANDARD_ROLES[-1:] if name in found]
    return (*usual, *found.values(), *last)


def _merged(one: RoleOptions, other: RoleOptions) -> RoleOptions:
    changes: dict[str, Any] = {}
    for item in fields(RoleOptions):
        mine, theirs = getattr(one, item.name), getattr(other, item.name)
        if _absent(theirs):
            continue
        if _absent(mine) or mine == theirs:
            changes[item.name] = theirs
        elif item.name == "env":
            for pair in theirs.items():
                mine = _with_pair(mine, pair, f"--role {one.name}")
            changes["env"] = mine
        else:
            word = _OPTIONS[item.name].name if item.name in _OPTIONS else _("a number")
            raise UsageError(
                _("The role {name} is given two different values of {word}.").format(
                    name=one.name, word=word
                ),
                _("Give one of them."),
            )
    return replace(one, **changes)


def _absent(value: object) -> bool:
    """Return whether a value is not given; 0 is a value."""
    return value is None or value is False or value == () or value == {}


def split_parts(text: str) -> tuple[str, list[tuple[str, str | None]]]:
    """Split a text into ``NAME=N`` and pairs; a word without a value has None.

    Raises
    ------
    UsageError
        If a part is empty or a quote is not closed.
    """
    head, comma, rest = text.partition(",")
    parts: list[tuple[str, str | None]] = []
    while comma:
        rest = rest.lstrip()
        match = _WORD.match(rest)
        if match is None:
            raise UsageError(
                _("--role {text!r} has an empty part after a comma.").format(text=text[:60]),
                _('Quote a value that holds commas: env="A=1,2", or give cmd= last.'),
            )
        word, rest = match.group(), rest[match.end() :]
        if not rest.startswith("="):
            before, comma, rest = rest.partition(",")
            parts.append((word + before.rstrip(), None))
            continue
        value, comma, rest = _value(word.lower(), rest[1:], text)
        parts.append((word, value))
    return head.strip(), parts


def _value(word: str, rest: str, text: str) -> tuple[str, str, str]:
    """Return the value at the beginning of ``rest``, the comma after it, and the text after it."""
    before = ""
    if word == "env" and (named := _ENV.match(rest)):
        before, rest = named.group(), rest[named.end() :]
    if rest[:1] in ("'", '"'):
        inside, after = _quoted(rest, text, strict=word not in _LAST)
        if inside is not None:
            return before + inside, after[:1], after[1:]
    if word in _LAST:
        return before + rest, "", ""
    value, comma, rest = rest.partition(",")
    return before + value.strip(), comma, rest


def _quoted(rest: str, text: str, *, strict: bool) -> tuple[str | None, str]:
    """Return the quoted text, and the text after it; None: the quotes are part of a command."""
    quote, found, position = rest[0], "", 1
    while position < len(rest):
        char = rest[position]
        if char == "\\" and quote == '"' and rest[position + 1 : position + 2] in ('"', "\\"):
            found += rest[position + 1]
            position += 2
            continue
        position += 1
        if char == quote:
            after = rest[position:].lstrip()
            if not after or after.startswith(","):
                return found, after
            break
        found += char
    if strict:
        raise UsageError(
            _("--role {text!r} has a quote that is not closed before the next comma.").format(
                text=text[:60]
            ),
            _('Write for example env="A=1,2".'),
        )
    return None, rest


def quote_value(text: str) -> str:
    """Return ``text`` as a value: in double quotes if that is necessary."""
    if text and not re.search(r"[\s,'\"\\]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


ROLE = ValueType("role", parse_role, format_role, complete=complete_role)


def _format_resources(amounts: Mapping[str, int]) -> str:
    words = {
        key: format_memory(amount) if key == "memory" else str(amount)
        for key, amount in amounts.items()
    }
    return ",".join(f"{key.replace('gpus', 'gpu')}={word}" for key, word in words.items())


RESOURCES = ValueType("resources", parse_resources, _format_resources, prefix=True)


@dataclass(frozen=True)
class _RolesOption(ListOption):
    """The option ``--role``."""

    def collect(self, given: Iterable[RoleOptions]) -> tuple[RoleOptions, ...]:
        """See ``Option``."""
        return merge_roles(given)


def _part(part: ValueType, build: Callable[[Any], RoleOptions]) -> ValueType:
    """Return a type whose value is an option of one role."""
    return replace(part, parse=lambda text: build(part.parse(text)))


def _count(role: str, *aliases: str, help: str, heading: str = "") -> Option:
    number = count(_("The number of {role} tasks").format(role=role))
    return Option(
        f"--{role}",
        _part(number, lambda found: RoleOptions(role, found)),
        metavar="N",
        heading=heading,
        aliases=aliases,
        help=help,
    )


def _resources(role: str, *, help: str, in_help: bool = True) -> Option:
    number = 1 if role == "tensorboard" else None
    size = _part(RESOURCES, lambda found: RoleOptions(role, number, **found))
    return Option(f"--{role}_resources", size, metavar="LIST", in_help=in_help, help=help)


def _launch_cmd(role: str, *, help: str, in_help: bool = True) -> Option:
    command = _part(COMMAND, lambda found: RoleOptions(role, command=found))
    return Option(f"--{role}_launch_cmd", command, metavar="COMMAND", in_help=in_help, help=help)


def _docker_image(role: str, *, help: str, in_help: bool = True) -> Option:
    number = 1 if role == "tensorboard" else None
    image = _part(TEXT, lambda found: RoleOptions(role, number, image=found))
    return Option(f"--{role}_docker_image", image, metavar="IMAGE", in_help=in_help, help=help)


def _parts(role: str, *, in_help: bool) -> dict[str, Option]:
    """Return ``--ps_resources --ps_launch_cmd --ps_docker_image``, as in Apache Submarine."""
    return {
        f"{role}_resources": _resources(
            role,
            in_help=in_help,
            help="memory=8G,vcores=2,gpu=2 (chief_ and evaluator_ too).",
        ),
        f"{role}_launch_cmd": _launch_cmd(
            role, in_help=in_help, help="Its command [the workers']."
        ),
        f"{role}_docker_image": _docker_image(role, in_help=in_help, help="Its image [the job's]."),
    }


#: The options of ``run`` for single roles, in the order of the help. The value of each is an option
#: of its role; ``--worker_resources`` is the size of all roles without a size of their own.
ROLE_OPTIONS: Mapping[str, Option] = {
    "worker": _count(
        "worker", "--num_workers", "--workers", heading="Roles", help="Number of workers [1]."
    ),
    "ps": _count("ps", "--num_ps", help="Number of parameter servers [0]."),
    "chief": _count("chief", "--num_chief", help="A separate chief, 0 or 1 [worker 0 is chief]."),
    "evaluator": _count("evaluator", "--num_evaluator", help="Number of evaluators [0]."),
    "roles": _RolesOption(
        "--role",
        ROLE,
        metavar="NAME=N,...",
        help="Any role: NAME=N,memory=4G,gpu=1,after=ROLE,cmd=COMMAND; repeatable.",
    ),
    "worker_resources": Option(
        "--worker_resources",
        RESOURCES,
        metavar="LIST",
        help="Size of a worker: memory=8G,vcores=2,gpu=2.",
    ),
    "worker_launch_cmd": _launch_cmd(
        "worker", help="Shell command to run instead of a program; %input_path% etc. are replaced."
    ),
    "worker_docker_image": _docker_image("worker", help="Its image [the job's]."),
    **_parts("ps", in_help=True),
    **_parts("chief", in_help=False),
    **_parts("evaluator", in_help=False),
    "tensorboard": Flag("--tensorboard", help="Run TensorBoard in the job."),
    "tensorboard_resources": _resources("tensorboard", help="Its size [memory=1G,vcores=1]."),
    "tensorboard_docker_image": _docker_image("tensorboard", help="Its image."),
}
