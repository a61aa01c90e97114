"""Format parts of a DAG file as Python source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WIDTH = 96


def call(name: str, arguments: Mapping[str, str], indent: int) -> str:
    """Return ``name(key=value, ...)``, one argument per line."""
    space = " " * indent
    lines = [f"{space}    {key}={value}," for key, value in arguments.items()]
    return "\n".join([f"{name}(", *lines, f"{space})"])


def block(text: str, indent: int) -> str:
    """Return a text of several lines as adjacent string literals, one per line."""
    if "\n" not in text and len(text) < _WIDTH - indent:
        return repr(text)
    space = " " * (indent + 4)
    lines = [f"{space}{line + chr(10)!r}" for line in text.split("\n")]
    return "\n".join(["(", *lines, " " * indent + ")"])


def table(values: Mapping[str, str], indent: int) -> str:
    """Return a dict of texts, one entry per line."""
    if not values:
        return "{}"
    space = " " * (indent + 4)
    lines = [f"{space}{key!r}: {value!r}," for key, value in values.items()]
    return "\n".join(["{", *lines, " " * indent + "}"])


def names(values: Sequence[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(repr(value) for value in values) + "]"
