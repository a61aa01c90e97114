"""One role as it was asked for, ``--role NAME=N,memory=4G,...``: parsed, merged, and back to words.

Does not fill in defaults (``roles_of``) and does not judge one role against another
(``role_checks``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import KINDS, format_memory, parse_count, parse_memory
from submarine_jobs.options.pairs import format_pair, parse_env
from submarine_jobs.options.role_parts import quoted, split_parts

#: Roles with options of their own, in the order in which a job lists its roles.
USUAL = ("chief", "master", "worker", "ps", "evaluator", "tensorboard")
NAME = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PLAIN = re.compile(r"^[^\s,'\"]{1,255}\Z")


@dataclass(frozen=True)
class RoleOptions:
    """One role, as far as somebody said; None or empty: nobody did.

    Parameters
    ----------
    memory
        MiB.
    least
        So many instances are enough to start.
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
WORDS = {
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
FLAGS = ("spread", "relax")
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
    if word in FLAGS and value is None:
        values[word] = True
        return
    if word not in WORDS or value is None:
        words = ", ".join((*WORDS, *FLAGS))
        shown = word if value is None else f"{word}={value}"
        raise UsageError(f"{where}: {shown[:40]!r} is not known there.", f"It takes {words}.")
    key = WORDS[word]
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
    from submarine_jobs.model import parse_python_env

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
    for word, key in WORDS.items():
        value = getattr(role, key)
        if value is None or key == "command":
            continue
        if key == "env":
            texts = [format_pair(*pair) for pair in value.items()]
        elif isinstance(value, tuple):
            texts = list(value)
        else:
            texts = [format_memory(value) if key == "memory" else str(value)]
        words += [f"{word}={quoted(text)}" for text in texts]
    words += [flag for flag in FLAGS if getattr(role, flag)]
    if role.command is not None:
        raw = role.command[:1] not in "'\""
        words.append(f"cmd={role.command if raw else quoted(role.command)}")
    return ",".join(words)


def merge_roles(roles: Iterable[RoleOptions]) -> tuple[RoleOptions, ...]:
    """One entry a role, the usual ones first; what was said in several places put together.

    Raises
    ------
    UsageError
        If two places say different things of one role.
    """
    found: dict[str, RoleOptions] = {}
    for role in roles:
        found[role.name] = _merged(found[role.name], role) if role.name in found else role
    usual = [found.pop(name) for name in USUAL[:-1] if name in found]
    last = [found.pop(name) for name in USUAL[-1:] if name in found]
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
            word = {key: word for word, key in WORDS.items()}.get(item.name, "a number")
            raise UsageError(
                f"The role {one.name} is given two different values of {word}.", "Give one of them."
            )
    return replace(one, **changes)


def _absent(value: object) -> bool:
    """Whether nobody said anything; 0 was said."""
    return value is None or value is False or value == () or value == {}
