"""Find the files of a path, a directory or a pattern, by the listings of directories."""

from __future__ import annotations

import fnmatch
import re
from typing import Callable, Iterator, Sequence

from submarine_runtime.storage import Entry

_MAGIC = re.compile(r"[*?\[]")
List = Callable[[str], Sequence[Entry]]
Stat = Callable[[str], "Entry | None"]


def has_pattern(path: str) -> bool:
    """Return whether a path is a pattern."""
    return _MAGIC.search(path) is not None


def files_of(path: str, stat: Stat, entries: List) -> list[tuple[str, Entry]]:
    """Return path and entry of each file of a path, sorted by path.

    A path that exists is not taken as a pattern. ``**`` stands for any number of directories.

    Parameters
    ----------
    stat, entries
        Return the entry of a path, and those of a directory.
    """
    found = stat(path)
    if found is not None:
        return [(path, found)] if not found.is_directory else sorted(_below(path, entries))
    if not has_pattern(path):
        return []
    parts = [part for part in path.split("/") if part]
    fixed = next(number for number, part in enumerate(parts) if has_pattern(part))
    base = "/" + "/".join(parts[:fixed])
    matches: dict[str, Entry] = {}
    for match, entry in _matching(base.rstrip("/"), parts[fixed:], entries):
        if entry.is_directory:
            matches.update(_below(match, entries))
        else:
            matches[match] = entry
    return sorted(matches.items())


def _below(directory: str, entries: List) -> Iterator[tuple[str, Entry]]:
    for entry in entries(directory or "/"):
        path = f"{directory.rstrip('/')}/{entry.name}"
        if entry.is_directory:
            yield from _below(path, entries)
        else:
            yield path, entry


def _matching(directory: str, parts: Sequence[str], entries: List) -> Iterator[tuple[str, Entry]]:
    """Yield what the parts of a pattern match in a directory."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        if not rest:
            yield from _below(directory, entries)
            return
        yield from _matching(directory, rest, entries)
    for entry in entries(directory or "/"):
        path = f"{directory}/{entry.name}"
        if part == "**":
            if entry.is_directory:
                yield from _matching(path, parts, entries)
        elif _matches(entry.name, part):
            if not rest:
                yield path, entry
            elif entry.is_directory:
                yield from _matching(path, rest, entries)


def _matches(name: str, part: str) -> bool:
    # As in a shell, a pattern matches no hidden name unless it begins with a dot.
    hidden = name.startswith(".") and not part.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, part)
