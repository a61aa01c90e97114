"""The text of ``--role``, cut at its commas; pure.

A value may be quoted; ``cmd=`` without quotes takes the rest.
"""

from __future__ import annotations

import re

from submarine_jobs.errors import UsageError

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=(?=[\"'])")
_LAST = ("cmd", "launch_cmd")


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


def quoted(text: str) -> str:
    """``text`` as a value: as it stands where that is safe, else in double quotes."""
    if text and not re.search(r"[\s,'\"\\]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
