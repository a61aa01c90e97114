"""Brings a job's inputs to the container before its program starts.

Shares files out over the tasks of a role where asked. Does not look at what is in them.
"""

from __future__ import annotations

import errno
import os
import shutil
from typing import Callable, NamedTuple, Sequence

from submarine_runtime.agent.fetching import Fetching, Wanted
from submarine_runtime.agent.scratch import Scratch
from submarine_runtime.agent.store import Entry, Store, StoreError
from submarine_runtime.agent.store_local import make_directories
from submarine_runtime.protocol.launch import AgentConfig, Input
from submarine_runtime.protocol.reasons import EndReason

#: Bounds what one input may ask of the NameNode and of our memory.
MAX_FILES = 200_000


class InputError(Exception):
    """An input could not be fetched; one sentence, and the job's end reason."""

    def __init__(self, message: str, reason: EndReason = EndReason.INPUT_MISSING) -> None:
        super().__init__(message)
        self.reason = reason


class SourceFile(NamedTuple):
    """A file of an input: path below the input's directory, size in bytes."""

    path: str
    size: int


def fetch(
    config: AgentConfig,
    store: Store,
    scratch: Scratch,
    index: int,
    count: int,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, str]:
    """Fetch ``config.fetch``; NAME -> local path, a file or a directory.

    Parameters
    ----------
    index, count
        Which of how many tasks of the role this is, for inputs that are shared out.
    on_progress
        Called in this thread, at most twice a second, with the bytes that are there and the bytes
        of all inputs. What it raises ends the fetch and comes through.

    Raises
    ------
    InputError
        If an input is missing or refused, or the disk is full.
    """
    fetching = Fetching(store, config.save_grace)
    found: dict[str, str] = {}
    wanted: list[Wanted] = []
    for one in config.fetch:
        root = scratch.path("inputs", one.name)
        try:
            files, single = fetching.patiently(lambda one=one: _look(store, one))  # type: ignore[misc]
        except StoreError as exc:
            raise InputError(f"--input {one.name}: {exc}.") from exc
        if one.shard and not single:
            files = share(files, index, count)
        elif one.shard and count > 1:
            raise InputError(
                f"--input {one.name}: {one.source} is one file, and :shard shares out the files of "
                "a directory; leave :shard out, or name a directory."
            )
        found[one.name] = os.path.join(root, files[0].path) if single else root
        source = os.path.dirname(one.source) if single else one.source.rstrip("/")
        for file in files:
            target = os.path.join(root, *file.path.split("/"))
            wanted.append(Wanted(f"{source}/{file.path}", target, file.size))
        make_directories(root)
    _check_disk(scratch, wanted)
    try:
        fetching.fetch(wanted, on_progress)
    except StoreError as exc:
        raise InputError(f"An input could not be fetched: {exc}.") from exc
    except OSError as exc:
        reason = EndReason.LAUNCH_FAILED
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = EndReason.DISK_FULL
        where = exc.filename or scratch.root
        raise InputError(f"Cannot write an input to {where}: {exc.strerror}.", reason) from exc
    return found


def share(files: Sequence[SourceFile], index: int, count: int) -> list[SourceFile]:
    """The part of ``files`` that task ``index`` of ``count`` gets.

    Each task's bytes come out about equal, and every task works out the same parts. Files whose
    name begins with ``_`` or ``.`` tell about the others (``_metadata``): every task gets them.
    """
    loads = [(0, 0, task) for task in range(count)]
    mine = []
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if file.path.rpartition("/")[2][:1] in ("_", "."):
            mine.append(file)
            continue
        size, number, task = min(loads)
        loads[task] = (size + file.size, number + 1, task)
        if task == index:
            mine.append(file)
    return sorted(mine)


def _look(store: Store, one: Input) -> tuple[list[SourceFile], bool]:
    """The files of an input, and whether it is a single file."""
    entry = store.stat(one.source)
    if entry is None:
        raise InputError(
            f"--input {one.name}: there is nothing at {one.source}. Check the URI, and that the "
            "file was not moved or deleted since the job was submitted."
        )
    if not entry.is_directory:
        return [SourceFile(os.path.basename(one.source.rstrip("/")), entry.size)], True
    return _walk(store, one), False


def _walk(store: Store, one: Input) -> list[SourceFile]:
    root = one.source.rstrip("/")
    found: list[SourceFile] = []
    pending = [""]
    while pending:
        directory = pending.pop()
        for entry in store.entries(f"{root}/{directory}".rstrip("/")):
            path = f"{directory}/{entry.name}".lstrip("/")
            _check_name(one, entry)
            if entry.is_directory:
                pending.append(path)
            else:
                found.append(SourceFile(path, entry.size))
        if len(found) + len(pending) > MAX_FILES:
            raise InputError(
                f"--input {one.name}: more than {MAX_FILES} files below {one.source}; "
                "pack them into fewer, or name a smaller directory."
            )
    return sorted(found)


def _check_name(one: Input, entry: Entry) -> None:
    """Names come from elsewhere: none may lead out of the input's directory."""
    if entry.name in (".", "..") or "/" in entry.name or "\0" in entry.name:
        raise InputError(f"--input {one.name}: a file is named {entry.name!r}, which is no name.")


def _check_disk(scratch: Scratch, wanted: Sequence[Wanted]) -> None:
    needed = sum(file.size - file.there() for file in wanted)
    free = shutil.disk_usage(scratch.root).free
    if needed > free:
        raise InputError(
            f"The inputs need {needed / 2**30:.1f} GiB and the disk of {scratch.root} has "
            f"{free / 2**30:.1f} GiB free. Share them out with :shard, or ask for a node with a "
            "larger disk.",
            EndReason.DISK_FULL,
        )
