"""Saves what the program left to the job directory, file by file, never a whole file in memory.

Only plain files are saved: a link could point at anything that the agent may read. Does not save
logs (``publisher``) and saves once, at the end.
"""

from __future__ import annotations

import os
import stat
from typing import Callable, Iterator, Mapping, NamedTuple

from submarine_runtime.agent.store import StoreError

MAX_FILES = 20_000


class Item(NamedTuple):
    """One file to save: path in the job directory, path here, size; or why it is not saved."""

    path: str
    source: str
    size: int
    refusal: str = ""


def find_outputs(directories: Mapping[str, str], prefix: str = "") -> Iterator[Item]:
    """All files of the output directories, links and odd names with their refusal.

    Parameters
    ----------
    directories
        Name in the job directory -> directory here.
    prefix
        Where in the job directory they go: ``tasks/worker-1/`` for a task that is not the chief.
    """
    count = 0
    for name, root in sorted(directories.items()):
        for directory, subdirectories, files in os.walk(root):
            subdirectories.sort()
            links = [d for d in subdirectories if os.path.islink(os.path.join(directory, d))]
            for file in sorted(files + links):
                count += 1
                if count > MAX_FILES:
                    yield Item(
                        prefix + name, root, 0, f"More than {MAX_FILES} files: the rest of {name}."
                    )
                    return
                source = os.path.join(directory, file)
                yield _item(f"{prefix}{name}/{os.path.relpath(source, root)}", source)


def _item(path: str, source: str) -> Item:
    shown = path.encode("utf-8", "backslashreplace").decode()[:300]
    try:
        path.encode("utf-8")
        info = os.lstat(source)
    except UnicodeEncodeError:
        return Item(shown, source, 0, f"{shown!r} was not saved: its name is not UTF-8.")
    except OSError as exc:
        return Item(shown, source, 0, f"{shown!r} was not saved: {exc.strerror}.")
    if not stat.S_ISREG(info.st_mode):
        return Item(shown, source, 0, f"{shown!r} was not saved: it is not a plain file.")
    if any(ord(character) < 32 or character == "\x7f" for character in path):
        return Item(shown, source, 0, f"{shown!r} was not saved: control characters in its name.")
    return Item(path, source, info.st_size)


def save_outputs(
    items: Iterator[Item],
    upload: Callable[[str, str], int],
    saved: Callable[[str, int], None],
    missing: Callable[[str], None],
) -> str | None:
    """Upload each item; returns the first failure's sentence, or None when all is there.

    Parameters
    ----------
    upload
        Puts a local file at a path of the job directory, with all the patience there is.
    saved, missing
        Told of each file that is there, and with one sentence of each that is not.
    """
    failure: str | None = None
    for item in items:
        if item.refusal:
            missing(item.refusal)
            continue
        try:
            saved(item.path, upload(item.path, item.source))
        except StoreError as exc:
            failure = failure or str(exc)
            missing(f"{item.path[:300]!r} was not saved: {exc}.")
            if exc.transient:
                return failure  # the patience for all files is spent
    return failure
