"""The words of ``--input NAME=URI:stream=WORD,...``, and the completion of ``--input``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import submarine_data.formats as formats
from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _

#: The modes of ``--input``; those of ``SHARED`` divide the data and may name roles.
MODES = ("download", "shard", "list", "mount", "stream")
SHARED = ("shard", "list", "stream")
STREAM = "stream"
_SIZE = re.compile(r"([0-9]{1,12})([kMG]?)\Z")
_FACTORS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_WHOLE = re.compile(r"[0-9]{1,12}\Z")


def _count(text: str) -> str | None:
    return str(int(text)) if _WHOLE.match(text) else None


def _positive(text: str) -> str | None:
    return _count(text) if text.strip("0") else None


def _bytes(text: str) -> str | None:
    match = _SIZE.match(text)
    return str(int(match[1]) * _FACTORS[match[2]]) if match else None


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda text: text if text in words else None


def _format(text: str) -> str | None:
    return text if text in formats.format_names() else None


#: Word -> its check, which returns the value as jobs have it; and an example.
_WORDS: dict[str, tuple[Callable[[str], str | None], str]] = {
    "epochs": (_positive, "3"),
    "shuffle": (_count, "100000"),
    "seed": (_count, "7"),
    "frame": (_one_of("lines", "arrow"), "arrow"),
    "to": (_one_of("pipe", "stdin"), "stdin"),
    "batch": (_positive, "8192"),
    "ahead": (_bytes, "4M"),
    "format": (_format, "csv"),
}


def parse_stream_words(name: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a stream in a uniform spelling.

    Parameters
    ----------
    name
        Of the input, for messages.

    Raises
    ------
    UsageError
        If a word is unknown, has an invalid value, or is given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        key, _equals, text = word.partition("=")
        check, example = _WORDS.get(key, (None, ""))
        if check is None or key in found:
            raise UsageError(
                _("--input {name}: {word!r} behind :stream= is unknown or given twice.").format(
                    name=name, word=word[:60]
                ),
                _("The words are {words}, and names of roles.").format(
                    words=", ".join(f"{key}={text}" for key, (_check, text) in _WORDS.items())
                ),
            )
        value = check(text)
        if value is None:
            raise UsageError(
                _("--input {name}: {word!r} behind :stream= has no valid value.").format(
                    name=name, word=word[:60]
                ),
                _("Write for example {key}={example}.").format(key=key, example=example),
            )
        found[key] = value
    return tuple(f"{key}={value}" for key, value in found.items())


def complete_input(start: str) -> list[str]:
    """Return the completions of ``NAME=URI:`` with a mode, and of the words of ``stream``."""
    head, colon, typed = start.rpartition(":")
    if not colon or "=" not in head or head.endswith("=") or "/" in typed:
        return []
    mode, equals, words = typed.partition("=")
    if not equals:
        if head.endswith("=data"):
            return []  # The name of a dataset.
        return [f"{head}:{word}" for word in MODES if word.startswith(mode)]
    if mode != STREAM:
        return []
    before, comma, word = words.rpartition(",")
    given = {one.partition("=")[0] for one in before.split(",")}
    prefix = f"{head}:{mode}={before}{comma}"
    offered = [f"{key}=" for key in _WORDS if key not in given]
    offered += ["frame=lines", "frame=arrow", "to=pipe", "to=stdin"] if "=" in word else []
    if word.startswith("format="):
        offered += [f"format={one}" for one in formats.format_names()]
    return [f"{prefix}{one}" for one in offered if one.startswith(word) and one != word]
