"""``--input``, ``--param``, ``--file``, ``--archive``: values with parts, and back; pure functions.

Does not open what is named.
"""

from __future__ import annotations

import json
import re
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.model import SUFFIXES, Localization, NamedInput
from submarine_jobs.options.pairs import MAX_VALUE, parse_localization

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_SHARD = ":shard"
_SHARDED = re.compile(r":shard(?:=([^/:]*))?\Z")
_ROLE = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PORT_PATH = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*(?:/|$)")


def parse_input(text: str) -> NamedInput:
    """``NAME=URI[:shard[=ROLE,...]]``.

    Raises
    ------
    UsageError
        If it is no such pair.
    """
    name, equals, uri = text.partition("=")
    sharded = _SHARDED.search(uri)
    uri = uri[: sharded.start()] if sharded else uri
    words = sharded.group(1) if sharded else None
    roles = tuple(dict.fromkeys(words.split(","))) if words is not None else ()
    if not equals or not _NAME.match(name) or not uri.strip() or not uri.isprintable():
        raise UsageError(
            f"--input {text[:60]!r} is not NAME=URI[:shard].",
            "Write for example --input train=hdfs:///data/train:shard.",
        )
    for role in roles:
        if not _ROLE.match(role):
            raise UsageError(
                f"--input {name}: {role[:40]!r} behind :shard= is not the name of a role.",
                "Write for example --input train=hdfs:///data/train:shard=chief,worker.",
            )
    return NamedInput(name, uri, sharded is not None, roles)


def format_input(item: NamedInput) -> str:
    """``NAME=URI[:shard[=ROLE,...]]``."""
    shard = _SHARD if item.shard else ""
    roles = "=" + ",".join(item.shard_roles) if item.shard_roles else ""
    return f"{item.name}={item.uri}{shard}{roles}"


def parse_param(text: str) -> tuple[str, Any]:
    """NAME and value of ``lr=0.1``: JSON where it is JSON, else text.

    Raises
    ------
    UsageError
        If it is no such pair, or too long.
    """
    name, equals, value = text.partition("=")
    if not equals or not _NAME.match(name):
        raise UsageError(
            f"--param {text[:60]!r} is not NAME=VALUE.", "Write for example --param lr=0.1."
        )
    if len(value) > MAX_VALUE or "\0" in value:
        raise UsageError(f"The value of --param {name} holds a NUL or is longer than 32 KiB.")
    try:
        return name, json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return name, value


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def format_param(name: str, value: Any) -> str:
    """``NAME=VALUE``; text stays as it is where it would not be read as something else.

    Raises
    ------
    UsageError
        For a value that JSON cannot hold.
    """
    if isinstance(value, str) and parse_param(plain := f"{name}={value}")[1] == value:
        return plain
    try:
        return f"{name}={json.dumps(value, allow_nan=False)}"
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The value of --param {name} cannot be written as JSON: {error}.",
            "Give numbers, text, true, false, null, lists or objects.",
        ) from None


def parse_file(text: str) -> Localization:
    """``SRC[:TARGET]``: a file or directory, found beside the program under its own name."""
    return _with_target(text, "--file", _last_part(text))


def parse_archive(text: str) -> Localization:
    """``SRC[:DIR]``: an archive that is unpacked into DIR, by default its name without the suffix.

    Raises
    ------
    UsageError
        If its name does not end as an archive's does.
    """
    own = _last_part(text)
    for suffix in SUFFIXES:
        own = own.removesuffix(suffix)
    item = _with_target(text, "--archive", own)
    if not item.source.endswith(SUFFIXES):
        raise UsageError(
            f"--archive {text[:80]!r} does not end as an archive does.",
            f"Give a file that ends in {', '.join(SUFFIXES)}.",
        )
    return item


def _with_target(text: str, option: str, default: str) -> Localization:
    whole = text if _names_target(text) else f"{text}:{default}"
    try:
        item = parse_localization(whole)
    except UsageError as error:
        raise UsageError(error.message.replace("--localization", option), error.fix) from None
    return Localization(item.source, item.target)


def _names_target(text: str) -> bool:
    """Whether a colon stands behind scheme, host and port."""
    match = _PORT_PATH.match(text)
    return ":" in (text[match.end() :] if match else text)


def _last_part(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2]


def format_target(item: Localization) -> str:
    """``SRC:TARGET``, as ``--file`` and ``--archive`` take it."""
    return f"{item.source}:{item.target}"


def parse_fraction(text: str) -> float:
    """0 to 1 of ``0.2`` or ``20%``.

    Raises
    ------
    UsageError
        If it is neither, or outside.
    """
    plain = text.strip()
    try:
        number = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise UsageError(f"{text[:40]!r} is no fraction.", "Write for example 0.2 or 20%.")
    return number
