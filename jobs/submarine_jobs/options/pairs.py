"""Option values with parts: K=V, LABEL=URL, SRC:TARGET[:rw]; pure functions.

Each ``parse_*`` has a ``format_*`` that gives the text back. Does not open what is named.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.model import Localization

MAX_VALUE = 32 * 1024
_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,254}\Z")
_CONF_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}\Z")
_LABEL = re.compile(r"^[^\x00-\x1f\x7f=]{1,80}\Z")
_AUTHORITY_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?\Z")
_SCHEME_ONLY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED_ENV = ("SUBMARINE_",)


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
    example = "Write SRC:TARGET[:rw], for example hdfs://nn:8020/data/words.txt:words.txt."
    rest, mode = text, "ro"
    head, colon, last = text.rpartition(":")
    if colon and last in ("rw", "ro") and ":" in head:
        rest, mode = head, last
    source, colon, target = rest.rpartition(":")
    if _CONTROL.search(text) or not colon or not source or not target:
        raise UsageError(f"--localization {text[:80]!r} has no SRC or no TARGET.", example)
    if _AUTHORITY_ONLY.match(source + ":") and target.startswith("//"):
        raise UsageError(f"--localization {text[:80]!r} has no TARGET.", example)
    if "://" in source and _AUTHORITY_ONLY.match(source):
        raise UsageError(f"--localization {text[:80]!r} has no TARGET.", example)
    if target == ".":
        target = source.rstrip("/").rpartition("/")[2]
    _check_target(text, target)
    return Localization(source=source, target=target, mode=mode)


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
