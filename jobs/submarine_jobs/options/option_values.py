"""Parse and format option values with parts: K=V, LABEL=URL, SRC:TARGET[:rw], NAME=URI[:shard].

Each ``parse_*`` has an inverse ``format_*``; a ``ValueType`` has both.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.model import (
    ARCHIVE_SUFFIXES,
    ENVIRONMENT_KINDS,
    Localization,
    NamedInput,
    format_duration,
    format_memory,
    format_timeout,
    parse_count,
    parse_duration,
    parse_memory,
    parse_python_env,
    parse_timeout,
)
from submarine_jobs.options.declaration import ValueType
from submarine_jobs.outputs import parse_names

MAX_VALUE = 32 * 1024
_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,254}\Z")
_CONF_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}\Z")
_LABEL = re.compile(r"^[^\x00-\x1f\x7f=]{1,80}\Z")
_AUTHORITY_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?\Z")
_SCHEME_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED_ENV = ("SUBMARINE_",)
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_SHARD = ":shard"
_SHARDED = re.compile(r":shard(?:=([^/:]*))?\Z")
_ROLE = re.compile(r"^[a-z][a-z0-9_]{0,31}\Z")
_PLACE = re.compile(r"^[^\s,'\"\x00-\x1f]{1,255}\Z")
_INTERFACE = re.compile(r"^[A-Za-z0-9_.:@,-]{1,64}\Z")
_PORT_PATH = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*(?:/|$)")


def parse_env(text: str) -> tuple[str, str]:
    """NAME and value of ``NAME=VALUE``; the value may be empty and may hold further ``=``.

    Raises
    ------
    UsageError
        For a name that no shell takes, one of Submarine's own, or a value that is too long.
    """
    name, equals, value = text.partition("=")
    if not equals or not _ENV_NAME.match(name):
        raise UsageError(
            f"--env {text[:60]!r} is not NAME=VALUE.", "Write for example --env EPOCHS=3."
        )
    if name.startswith(_RESERVED_ENV):
        raise UsageError(f"--env cannot set {name}:", "names with SUBMARINE_ are set by Submarine.")
    if "\0" in value or len(value) > MAX_VALUE:
        raise UsageError(f"The value of --env {name} holds a NUL or is longer than 32 KiB.")
    return name, value


def format_pair(name: str, value: str) -> str:
    """``NAME=VALUE``."""
    return f"{name}={value}"


def parse_conf(text: str) -> tuple[str, str]:
    """KEY and value of ``--conf KEY=VALUE``.

    Raises
    ------
    UsageError
        If it is no such pair.
    """
    key, equals, value = text.partition("=")
    if not equals or not _CONF_KEY.match(key) or _CONTROL.search(value) or not value.strip():
        raise UsageError(f"--conf {text[:60]!r} is not KEY=VALUE.")
    return key, value


def parse_quicklink(text: str) -> tuple[str, str]:
    """LABEL and URL of ``Zeppelin_Notebook=http://master-0:8080``.

    Raises
    ------
    UsageError
        If the label is empty or the URL is not http or https (nothing else may become a link).
    """
    label, equals, url = text.partition("=")
    if not equals or not _LABEL.match(label) or _CONTROL.search(url) or " " in url:
        raise UsageError(
            f"--quicklink {text[:60]!r} is not LABEL=URL.",
            "Write for example --quicklink Notes=http://host:8080.",
        )
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"The URL of --quicklink {label} is {url[:80]!r}.",
            "Give a whole http:// or https:// address.",
        )
    return label, url


def parse_localization(text: str) -> Localization:
    """``SRC:TARGET[:rw|:ro]`` as in Apache Submarine; SRC is a path or a URI with its own colons.

    TARGET ``.`` means the last part of SRC. Absolute targets exist in Submarine for Docker
    containers only, so they are refused here.

    Raises
    ------
    UsageError
        If a part is missing, or TARGET is not a name below the program's working directory.
    """
    rest, mode = text, "ro"
    head, colon, last = text.rpartition(":")
    if colon and last in ("rw", "ro") and ":" in head:
        rest, mode = head, last
    source, target = _source_and_target(rest, text)
    return Localization(source=source, target=target, mode=mode)


def _source_and_target(pair: str, text: str) -> tuple[str, str]:
    """Split ``SRC:TARGET`` of the option value ``text``."""
    example = "Write SRC:TARGET[:rw], for example hdfs://nn:8020/data/words.txt:words.txt."
    source, colon, target = pair.rpartition(":")
    if _CONTROL.search(text) or not colon or not source or not target:
        raise UsageError(f"--localization {text[:80]!r} has no SRC or no TARGET.", example)
    if _AUTHORITY_ONLY.match(source + ":") and target.startswith("//"):
        raise UsageError(f"--localization {text[:80]!r} has no TARGET.", example)
    if "://" in source and _AUTHORITY_ONLY.match(source):
        raise UsageError(f"--localization {text[:80]!r} has no TARGET.", example)
    if target == ".":
        target = source.rstrip("/").rpartition("/")[2]
    _check_target(text, target)
    return source, target


def format_localization(item: Localization) -> str:
    """``SRC:TARGET:MODE``, always with its mode."""
    return f"{item.source}:{item.target}:{item.mode}"


def _check_target(text: str, target: str) -> None:
    if target.startswith("/"):
        raise UsageError(
            f"The target of --localization {text[:80]!r} is absolute.",
            "Name a file below the working directory; in Docker the setting docker_mounts mounts "
            "directories of the nodes.",
        )
    parts = target.split("/")
    if any(part in ("", ".", "..") for part in parts) or ":" in target:
        raise UsageError(
            f"The target {target[:60]!r} of --localization is not a name below the working "
            "directory.",
            "Write for example words.txt or data/words.txt.",
        )


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
    for suffix in ARCHIVE_SUFFIXES:
        own = own.removesuffix(suffix)
    item = _with_target(text, "--archive", own)
    if not item.source.endswith(ARCHIVE_SUFFIXES):
        raise UsageError(
            f"--archive {text[:80]!r} does not end as an archive does.",
            f"Give a file that ends in {', '.join(ARCHIVE_SUFFIXES)}.",
        )
    return item


def _with_target(text: str, option: str, default: str) -> Localization:
    whole = text if _names_target(text) else f"{text}:{default}"
    try:
        # Without a mode: a target may be named rw.
        return Localization(*_source_and_target(whole, whole))
    except UsageError as error:
        raise UsageError(error.message.replace("--localization", option), error.fix) from None


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


def check_python_env(text: str) -> str:
    """Return a value of ``--python-env`` unchanged; raise UsageError if it is invalid."""
    parse_python_env(text)
    return text


def _complete_python_env(start: str) -> list[str]:
    kinds = (kind if kind in ("auto", "host") else f"{kind}:" for kind in ENVIRONMENT_KINDS)
    return [kind for kind in kinds if kind.startswith(start)]


def _check_command(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise UsageError("the command is empty.", "Give one, or leave it out.")
    return text


def _check_interface(text: str) -> str:
    if not _INTERFACE.match(text):
        raise UsageError(f"{text[:40]!r} is not a network interface.", "Write for example eth0.")
    return text


def _parse_keep(text: str) -> str:
    pattern = text.removeprefix("./").rstrip("/")
    outside = pattern.startswith(("/", "~")) or ".." in pattern.split("/") or "://" in pattern
    if not pattern or not pattern.isprintable() or len(pattern) > 500 or outside:
        raise UsageError(
            f"{text[:60]!r} is not a pattern of files in the program's working directory.",
            "Write it relative to that directory, for example 'runs/*' or my_model.keras.",
        )
    return pattern


def split_args(text: str) -> tuple[str, ...]:
    """The words of ``--args "--epochs 3"``.

    Raises
    ------
    UsageError
        If a quote is not closed.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise UsageError(f"--args {text[:60]!r} cannot be split into words: {exc}.") from exc


def count(what: str, minimum: int = 0) -> ValueType:
    """Return the type of a whole number; ``what`` names it in errors."""
    return ValueType("number", lambda text: parse_count(text, what, minimum), prefix=True)


def place(what: str) -> ValueType:
    """Return the type of the name of a node, a rack or a label."""

    def parse(text: str) -> str:
        if not _PLACE.match(text):
            raise UsageError(f"{text[:40]!r} is not {what}.")
        return text

    return ValueType("name", parse, prefix=True)


def choice(choices: Sequence[str], *, ignore_case: bool = False) -> ValueType:
    """Return the type of one of several words."""
    return ValueType("choice", choices=tuple(choices), ignore_case=ignore_case)


def _names(option: str) -> ValueType:
    return ValueType("names", lambda text: parse_names(text, option), ",".join)


MEMORY = ValueType("size", parse_memory, format_memory, prefix=True)
DURATION = ValueType("time", parse_duration, format_duration, prefix=True)
TIMEOUT = ValueType(
    "timeout",
    parse_timeout,
    format_timeout,
    complete=lambda start: ["never"] if "never".startswith(start) else [],
    prefix=True,
)
FRACTION = ValueType("fraction", parse_fraction, repr, prefix=True)
KEEP = ValueType("pattern", _parse_keep, prefix=True)
INTERFACE = ValueType("interface", _check_interface, prefix=True)
COMMAND = ValueType("command", _check_command, prefix=True)
ARGUMENTS = ValueType("arguments", split_args, shlex.join)
PYTHON_ENV = ValueType("env", check_python_env, complete=_complete_python_env)
ENV = ValueType("variable", parse_env, lambda pair: format_pair(*pair))
QUICKLINK = ValueType("link", parse_quicklink, lambda pair: format_pair(*pair))
CONF = ValueType("setting", parse_conf, lambda pair: format_pair(*pair))
PARAM = ValueType("parameter", parse_param, lambda pair: format_param(*pair))
LOCALIZATION = ValueType("localization", parse_localization, format_localization)
FILE = ValueType("file", parse_file, format_target)
ARCHIVE = ValueType("archive", parse_archive, format_target)
INPUT = ValueType("input", parse_input, format_input)
WITH = _names("--with")
RETURN = _names("--return")
