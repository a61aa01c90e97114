"""Fetch a job's inputs to the container before its program starts.

With ``:shard`` the files are divided among the tasks that train; their content is not read.
"""

from __future__ import annotations

import errno
import heapq
import os
import shutil
from dataclasses import dataclass
from typing import Callable, Mapping, NamedTuple, Sequence

from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.protocol import AgentConfig, EndReason, Member, NamedInput
from submarine_runtime.storage import (
    Entry,
    Fetcher,
    FileRequest,
    Scratch,
    Store,
    StoreError,
    make_directories,
)
from submarine_runtime.translation import _

#: Limits the load on the NameNode and the memory for one input.
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


@dataclass(frozen=True)
class Shard:
    """The shard of an input for one task: index and number of shards; 0 shards: no file."""

    index: int
    count: int


WHOLE, NOTHING = Shard(0, 1), Shard(0, 0)


def fetch_inputs(
    config: AgentConfig,
    store: Store,
    scratch: Scratch,
    shards: Mapping[str, Shard],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, str]:
    """Fetch ``config.fetch``; return NAME -> local path of a file or directory.

    Parameters
    ----------
    shards
        Name of an input -> this task's shard of it; other inputs are fetched completely.
    on_progress
        Called in this thread, at most twice a second, with the number of fetched bytes and the
        size of all inputs. An exception that it raises ends the fetch and is propagated.

    Raises
    ------
    InputError
        If an input is missing or not readable, or the disk is full.
    """
    fetching = Fetcher(store, config.save_grace)
    found: dict[str, str] = {}
    requests: list[FileRequest] = []
    for one in config.fetch:
        root = scratch.path("inputs", one.name)
        try:
            files, single = fetching.retry(lambda one=one: list_input(store, one))  # type: ignore[misc]
        except StoreError as exc:
            raise InputError(_("--input {one}: {error}.").format(one=one.name, error=exc)) from exc
        part = shards.get(one.name, WHOLE)
        if single and part.count > 1:
            raise InputError(
                _(
                    "--input {one}: {source} is one file, and :shard divides the files of a "
                    "directory; leave :shard out, or name a directory."
                ).format(one=one.name, source=one.uri)
            )
        found[one.name] = os.path.join(root, files[0].path) if single else root
        files = [] if part.count == 0 else files if single else shard_files(files, part)
        source = os.path.dirname(one.uri) if single else one.uri.rstrip("/")
        for file in files:
            target = os.path.join(root, *file.path.split("/"))
            requests.append(FileRequest(f"{source}/{file.path}", target, file.size))
        make_directories(root)
    _check_disk(scratch, requests)
    try:
        fetching.fetch(requests, on_progress)
    except StoreError as exc:
        raise InputError(_("An input could not be fetched: {error}.").format(error=exc)) from exc
    except OSError as exc:
        reason = EndReason.LAUNCH_FAILED
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = EndReason.DISK_FULL
        where = exc.filename or scratch.root
        raise InputError(
            _("Cannot write an input to {where}: {strerror}.").format(
                where=where, strerror=exc.strerror
            ),
            reason,
        ) from exc
    return found


def shard_of(config: AgentConfig, one: NamedInput, members: Sequence[Member]) -> Shard:
    """Return the shard of an input for the task of ``config`` in a gang of ``members``.

    An evaluator without a shard of a sharded input gets all files; other tasks without a shard get
    none. Without ``members`` the task runs alone and gets all files.
    """
    if not one.shard or not members:
        return WHOLE
    tasks = sharding_tasks(
        config.spec.framework, {**os.environ, **config.env}, members, one.shard_roles
    )
    return shard_of_task(f"{config.role}:{config.index}", tasks)


def shard_of_task(task: str, tasks: Sequence[str]) -> Shard:
    """Return the shard of ``task`` if an input is divided among ``tasks``."""
    if task in tasks:
        return Shard(tasks.index(task), len(tasks))
    return WHOLE if task.startswith("evaluator:") else NOTHING


def shard_files(files: Sequence[SourceFile], shard: Shard) -> list[SourceFile]:
    """Return the files of one shard; see ``divide``."""
    return divide(files, shard.count)[shard.index]


def divide(files: Sequence[SourceFile], count: int) -> list[list[SourceFile]]:
    """Return the files of each of ``count`` tasks.

    The sizes of the parts are about equal, and every task computes the same parts. Files with a
    name that begins with ``_`` or ``.`` describe the others (``_metadata``): every task gets them.
    """
    loads = [(0, 0, task) for task in range(count)]
    found: list[list[SourceFile]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        if file.path.rpartition("/")[2][:1] in ("_", "."):
            for part in found:
                part.append(file)
            continue
        size, number, task = loads[0]
        heapq.heapreplace(loads, (size + file.size, number + 1, task))
        found[task].append(file)
    return [sorted(part) for part in found]


def list_input(store: Store, one: NamedInput) -> tuple[list[SourceFile], bool]:
    """Return the files of an input, and whether it is a single file.

    Raises
    ------
    InputError
        If there is nothing at the URI, or there are too many files.
    """
    entry = store.stat(one.uri)
    if entry is None:
        raise InputError(
            _(
                "--input {one}: there is nothing at {source}. Check the URI, and that the file "
                "was not moved or deleted since the job was submitted."
            ).format(one=one.name, source=one.uri)
        )
    if not entry.is_directory:
        return [SourceFile(os.path.basename(one.uri.rstrip("/")), entry.size)], True
    return _walk(store, one), False


def _walk(store: Store, one: NamedInput) -> list[SourceFile]:
    root = one.uri.rstrip("/")
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
                _(
                    "--input {one}: more than {max_files} files below {source}; pack them into "
                    "fewer, or name a smaller directory."
                ).format(one=one.name, max_files=MAX_FILES, source=one.uri)
            )
    return sorted(found)


def _check_name(one: NamedInput, entry: Entry) -> None:
    """Reject names that lead out of the input's directory."""
    if entry.name in (".", "..") or "/" in entry.name or "\0" in entry.name:
        raise InputError(
            _("--input {one}: a file is named {entry!r}, which is not a valid name.").format(
                one=one.name, entry=entry.name
            )
        )


def _check_disk(scratch: Scratch, requests: Sequence[FileRequest]) -> None:
    needed = sum(file.size - file.local_size() for file in requests)
    free = shutil.disk_usage(scratch.root).free
    if needed > free:
        raise InputError(
            _(
                "The inputs need {needed:.1f} GiB and the disk of {root} has {free:.1f} GiB "
                "free. Divide them with :shard, or ask for a node with a larger disk."
            ).format(needed=needed / 2**30, root=scratch.root, free=free / 2**30),
            EndReason.DISK_FULL,
        )
