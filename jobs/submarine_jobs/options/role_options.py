"""Parse, merge and format the options of a role: ``--role NAME=N,memory=4G,...``.

Does not fill in defaults (``roles_of``) and does not judge one role against another
(``role_checks``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import KINDS, format_memory, parse_count, parse_memory, parse_python_env
from submarine_jobs.options.option_values import format_pair, parse_env

#: Roles with options of their own, in the order in which a job lists its roles.
STANDARD_ROLES = ("chief", "master", "worker", "ps", "evaluator", "tensorboard")
NAME = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PLAIN = re.compile(r"^[^\s,'\"]{1,255}\Z")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=(?=[\"'])")
_LAST = ("cmd", "launch_cmd")


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
    memory: int | None = None
    vcores: int | None = None
    gpus: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None
    least: int | None = None
    after: tuple[str, ...] = ()
    label: str | None = None
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    relax: bool = False
    spread: bool = False
    processes: int | None = None
    python_env: str | None = None
    image: str | None = None
    command: str | None = None

    @property
    def count(self) -> int:
        """Instances; a role that is named without a number has one."""
        return 1 if self.instances is None else self.instances


#: Word of ``--role`` -> field; the first word of each field is the canonical one.
ROLE_WORDS = {
    "memory": "memory",
    "vcores": "vcores",
    "gpu": "gpus",
    "env": "env",
    "kind": "kind",
    "min": "least",
    "after": "after",
    "label": "label",
    "node": "nodes",
    "rack": "racks",
    "avoid": "avoid",
    "processes": "processes",
    "python-env": "python_env",
    "image": "image",
    "cmd": "command",
}
ROLE_FLAGS = ("spread", "relax")
_SPELLINGS = {
    "gpus": "gpu",
    "yarn.io/gpu": "gpu",
    "vcore": "vcores",
    "python_env": "python-env",
    "docker_image": "image",
    "launch_cmd": "cmd",
    "node-label": "label",
    "node_label": "label",
    "avoid-node": "avoid",
    "avoid_node": "avoid",
}
_EXAMPLE = "Write for example --role reader=2,memory=4G,cmd=python read.py."


def parse_role(text: str) -> RoleOptions:
    """The role of ``NAME[=N][,WORD=VALUE...]``; ``cmd=`` takes the rest unless it is quoted.

    Raises
    ------
    UsageError
        For an impossible name or number, an unknown word, or one that is given twice.
    """
    head, parts = split_parts(text)
    name, equals, count = head.partition("=")
    if not NAME.match(name):
        raise UsageError(
            f"--role {text[:60]!r}: {name[:40]!r} cannot be a role's name (lower-case letters, "
            "digits and _).",
            _EXAMPLE,
        )
    values: dict[str, Any] = {"name": name}
    if equals:
        values["instances"] = parse_count(count, f"The number of {name} tasks")
    for word, value in parts:
        _take(values, name, _SPELLINGS.get(word.lower(), word.lower()), value)
    return RoleOptions(**values)


def _take(values: dict[str, Any], role: str, word: str, value: str | None) -> None:
    where = f"--role {role}"
    if word in ROLE_FLAGS and value is None:
        values[word] = True
        return
    if word not in ROLE_WORDS or value is None:
        words = ", ".join((*ROLE_WORDS, *ROLE_FLAGS))
        shown = word if value is None else f"{word}={value}"
        raise UsageError(f"{where}: {shown[:40]!r} is not known there.", f"It takes {words}.")
    key = ROLE_WORDS[word]
    parsed = _parse(where, word, value)
    if key == "env":
        values[key] = _with_pair(values.get(key, {}), parsed, where)
    elif key in ("after", "nodes", "racks", "avoid"):
        values[key] = tuple(dict.fromkeys((*values.get(key, ()), parsed)))
    elif values.setdefault(key, parsed) != parsed:
        raise UsageError(f"{where} gives {word} twice, with different values.")


def _with_pair(env: Mapping[str, str], pair: tuple[str, str], where: str) -> dict[str, str]:
    name, value = pair
    if env.get(name, value) != value:
        raise UsageError(f"{where} gives env {name} twice, with different values.")
    return {**env, name: value}


def _parse(where: str, word: str, value: str) -> Any:
    try:
        if word == "memory":
            return parse_memory(value)
        if word in ("vcores", "gpu", "min", "processes"):
            return parse_count(value, word, 0 if word == "gpu" else 1)
        if word == "env":
            return parse_env(value)
        if word == "python-env":
            return check_python_env(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", error.fix) from None
    if word == "cmd":
        return check_command(value, where)
    if word == "kind" and value not in KINDS:
        raise UsageError(f"{where}: kind cannot be {value[:40]!r};", f"one of {', '.join(KINDS)}.")
    if not _PLAIN.match(value) or not value.isprintable():
        raise UsageError(f"{where}: {word}={value[:40]!r} cannot be right.", _EXAMPLE)
    return value


def check_python_env(text: str) -> str:
    """``--python-env`` as it stands; raises UsageError for what is none."""
    parse_python_env(text)
    return text


def check_command(text: str, where: str) -> str:
    """A shell command as it stands; raises UsageError for an empty one."""
    if not text.strip() or "\0" in text:
        raise UsageError(f"{where}: the command is empty.", "Give one, or leave it out.")
    return text


def format_role(role: RoleOptions) -> str:
    """The text of ``--role`` that means ``role``; ``parse_role`` gives it back."""
    words = [role.name if role.instances is None else f"{role.name}={role.instances}"]
    for word, key in ROLE_WORDS.items():
        value = getattr(role, key)
        if value is None or key == "command":
            continue
        if key == "env":
            texts = [format_pair(*pair) for pair in value.items()]
        elif isinstance(value, tuple):
            texts = list(value)
        else:
            texts = [format_memory(value) if key == "memory" else str(value)]
        words += [f"{word}={quote_value(text)}" for text in texts]
    words += [flag for flag in ROLE_FLAGS if getattr(role, flag)]
    if role.command is not None:
        raw = role.command[:1] not in "'\""
        words.append(f"cmd={role.command if raw else quote_value(role.command)}")
    return ",".join(words)


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
            word = {key: word for word, key in ROLE_WORDS.items()}.get(item.name, "a number")
            raise UsageError(
                f"The role {one.name} is given two different values of {word}.", "Give one of them."
            )
    return replace(one, **changes)


def _absent(value: object) -> bool:
    """Return whether a value is not given; 0 is a value."""
    return value is None or value is False or value == () or value == {}


def split_parts(text: str) -> tuple[str, list[tuple[str, str | None]]]:
    """``NAME=N`` and the rest as pairs; a word without a value has None.

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
                f"--role {text[:60]!r} has an empty part after a comma.",
                'Quote a value that holds commas: env="A=1,2", or give cmd= last.',
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
    """The value at the beginning of ``rest``, the comma after it (or nothing) and what follows."""
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
    """What the quotes hold, and what follows them; None: these quotes belong to a command."""
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
            f"--role {text[:60]!r} has a quote that is not closed before the next comma.",
            'Write for example env="A=1,2".',
        )
    return None, rest


def quote_value(text: str) -> str:
    """``text`` as a value: as it stands where that is safe, else in double quotes."""
    if text and not re.search(r"[\s,'\"\\]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
