"""Fetch a job's inputs to the container before its program starts, or list or name them.

With ``:shard`` and ``:list`` the files are divided among the tasks that train; their content is
not read. The files of an input are those of its listing in the job directory, which the submission
writes; without one, the agent lists the path itself.
"""

from __future__ import annotations

import errno
import gzip
import heapq
import json
import os
import random
import shutil
import zlib
from dataclasses import dataclass
from typing import Callable, Mapping, NamedTuple, Sequence

from submarine_runtime.agent import program
from submarine_runtime.agent.preparation.remote_files import (
    RemoteError,
    fetch_remote,
    list_remote,
)
from submarine_runtime.files import replace_file
from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.protocol import AgentConfig, EndReason, InputSource, Member, NamedInput
from submarine_runtime.storage import (
    Entry,
    Fetcher,
    FileRequest,
    NotFoundError,
    Scratch,
    Store,
    StoreError,
    make_directories,
    open_store,
)
from submarine_runtime.translation import _

#: Limits the load on the NameNode and the memory for one input.
MAX_FILES = 200_000
#: Name of the file with the URIs of a task, in the directory of an input.
LIST = "uris.txt"


class InputError(Exception):
    """An input could not be fetched; one sentence, and the job's end reason."""

    def __init__(self, message: str, reason: EndReason = EndReason.INPUT_MISSING) -> None:
        super().__init__(message)
        self.reason = reason


class SourceFile(NamedTuple):
    """A file of an input: path below the input's directory, size in bytes (0: unknown).

    ``source`` is its absolute path in the job store or its URI; empty: it follows from ``path``.
    """

    path: str
    size: int
    source: str = ""


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
    """Fetch, list or name ``config.fetch``; return NAME -> value of its variable.

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
    work = _Fetch(config, store, scratch, on_progress)
    found = {}
    for one in config.fetch:
        if one.mode == "mount":
            found[one.name] = config.sources[one.name].url
            continue
        try:
            found[one.name] = work.add(one, shards.get(one.name, WHOLE))
        except (StoreError, RemoteError) as exc:
            raise _input_error(
                _("--input {one}: {error}.").format(one=one.name, error=exc), exc
            ) from exc
        except OSError as exc:
            raise _disk_error(scratch, exc) from exc
    try:
        work.fetch()
    except (StoreError, RemoteError) as exc:
        text = _("An input could not be fetched: {error}.").format(error=exc)
        raise _input_error(text, exc) from exc
    except OSError as exc:
        raise _disk_error(scratch, exc) from exc
    return found


class _Fetch:
    """The files that a task fetches for all of its inputs."""

    def __init__(
        self,
        config: AgentConfig,
        store: Store,
        scratch: Scratch,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._config, self._scratch, self._on_progress = config, scratch, on_progress
        self._fetcher = Fetcher(store, config.save_grace)
        self._store = store
        #: Prefix of the URIs in a store -> the files there; None: those read with fsspec.
        self._requests: dict[str | None, list[FileRequest]] = {}

    def add(self, one: NamedInput, part: Shard) -> str:
        """Add the files of an input, or write the list of their URIs; return the variable."""
        source = self._config.sources.get(one.name) or InputSource()
        files, single = self._list(one, source)
        if one.mode == "stream":
            return self._stream(one, source, files, part)
        if single and part.count > 1:
            raise InputError(
                _(
                    "--input {one}: {source} is one file, and :{mode} divides the files of a "
                    "directory; leave :{mode} out, or name a directory."
                ).format(one=one.name, source=one.uri, mode=one.word)
            )
        root = self._scratch.path("inputs", one.name)
        if source.hub:
            root = _place_hub(self._scratch, source)
        make_directories(root)
        if part.count == 0:
            files = []
        elif not single:
            files = divide(files, part.count, metadata=one.mode != "list")[part.index]
        if one.mode == "list":
            path = os.path.join(root, LIST)
            replace_file(path, _lines(one, source, files), mode=0o600)
            return path
        for file in files:
            prefix, place = self._place(file.source)
            target = os.path.join(root, *file.path.split("/"))
            self._requests.setdefault(prefix, []).append(FileRequest(place, target, file.size))
        return os.path.join(root, files[0].path) if single and files else root

    def _stream(
        self, one: NamedInput, source: InputSource, files: Sequence[SourceFile], part: Shard
    ) -> str:
        # Paths of the local backend's store: its URL would need quoting.
        prefix = "" if self._config.store.kind == "local" else source.url
        found = [(prefix * (f.source[:1] == "/") + f.source, f.size) for f in files]
        place = (part.index, part.count)
        return program.prepare_stream(self._config, self._scratch, one, place, found)

    def fetch(self) -> None:
        """Fetch the added files, from one store after the other."""
        config, done = self._config, 0
        requests = [file for some in self._requests.values() for file in some]
        total = sum(file.size for file in requests)
        _check_disk(self._scratch, requests)
        for prefix, files in self._requests.items():

            def report(count: int, _total: int = 0, before: int = done) -> None:
                self._on_progress(before + count, total)

            if prefix is None:
                fetch_remote(config, self._scratch, files, report)
            elif prefix:
                other = open_store(config.stores[prefix])
                other.on_wait = self._store.on_wait
                Fetcher(other, config.save_grace).fetch(files, report)
            else:
                self._fetcher.fetch(files, report)
            done += sum(file.size for file in files)
        self._on_progress(total, total)

    def _list(self, one: NamedInput, source: InputSource) -> tuple[list[SourceFile], bool]:
        """Return the files of an input with their sources, and whether it is a single file."""
        if source.listing:
            return self._fetcher.retry(lambda: _read_listing(self._store, one, source.listing))
        prefix, _path = self._place(one.uri)
        if prefix is None:
            found, single = list_remote(
                self._config,
                self._scratch,
                one.uri,
                MAX_FILES,
                lambda done: self._on_progress(0, 0),
            )
            files = [SourceFile(*item) for item in found]
            _check_paths(one, files)
            return files, single
        files, single = self._fetcher.retry(lambda: list_input(self._store, one))
        root = os.path.dirname(one.uri) if single else one.uri.rstrip("/")
        return [file._replace(source=f"{root}/{file.path}") for file in files], single

    def _place(self, source: str) -> tuple[str | None, str]:
        """Return the prefix of the store that has a file, and the path there."""
        if source.startswith("/"):
            return "", source
        for prefix in self._config.stores:
            if source.startswith(f"{prefix}/"):
                return prefix, source[len(prefix) :]
        return None, source


def _read_listing(store: Store, one: NamedInput, name: str) -> tuple[list[SourceFile], bool]:
    """Return the content of a listing in the job directory (``write_listing``)."""
    data = store.read(name)
    if data is None:
        raise InputError(
            _("--input {one}: {file} is missing in the job directory.").format(
                one=one.name, file=name
            )
        )
    try:
        content = json.loads(gzip.decompress(data))
        files = [
            SourceFile(path, size, *(source or [content["base"] + path]))
            for path, size, *source in content["files"]
        ]
        single = bool(content["single"])
    except (ValueError, TypeError, KeyError, EOFError, OSError, zlib.error) as exc:
        raise InputError(
            _("--input {one}: {file} in the job directory is damaged: {error}.").format(
                one=one.name, file=name, error=exc
            )
        ) from exc
    _check_paths(one, files)
    return files, single


def write_listing(files: Sequence[SourceFile], single: bool, base: str) -> bytes:
    """Return the listing of an input: JSON, compressed.

    Parameters
    ----------
    base
        What precedes the path of a file in its source, for the files of which that is true.
    """
    rows = [
        [path, size] if source == base + path else [path, size, source]
        for path, size, source in files
    ]
    content = {"version": 1, "base": base, "single": single, "files": rows}
    return gzip.compress(json.dumps(content).encode(), 6, mtime=0)


def _lines(one: NamedInput, source: InputSource, files: Sequence[SourceFile]) -> bytes:
    """Return the URIs of files, one a line, in UTF-8, with names as they are."""
    lines = []
    for file in files:
        uri = f"{source.url}{file.source}" if file.source.startswith("/") else file.source
        if len(uri.splitlines()) != 1:
            raise InputError(
                _(
                    "--input {one}: the name {name!r} contains a line break, so it cannot be in a "
                    "list of URIs; rename the file, or use :shard."
                ).format(one=one.name, name=file.path)
            )
        lines.append(f"{uri}\n")
    return "".join(lines).encode(errors="surrogateescape")


def _place_hub(scratch: Scratch, source: InputSource) -> str:
    """Write the names of a commit as the hub's cache has them; return the snapshot's directory."""
    repository = scratch.path("hf", "hub", source.hub)
    for name in source.refs:
        path = os.path.join(repository, "refs", *name.split("/"))
        make_directories(os.path.dirname(path))
        replace_file(path, source.commit.encode(), mode=0o600)
    return os.path.join(repository, "snapshots", source.commit)


def input_variables(config: AgentConfig, scratch: Scratch) -> dict[str, str]:
    """Return the other variables of the program that its inputs need."""
    found: dict[str, str] = {}
    if any(source.hub for source in config.sources.values()):
        found.update(HF_HOME=scratch.path("hf"), HF_HUB_OFFLINE="1")
    return found


def _input_error(text: str, exc: Exception) -> InputError:
    if isinstance(exc, NotFoundError):
        hint = _("Check that it was not moved or deleted since the job was submitted.")
        text = f"{text} {hint}"
    full = isinstance(exc, RemoteError) and exc.full
    return InputError(text, EndReason.DISK_FULL if full else EndReason.INPUT_MISSING)


def _disk_error(scratch: Scratch, exc: OSError) -> InputError:
    full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
    where = exc.filename or scratch.root
    return InputError(
        _("Cannot write an input to {where}: {strerror}.").format(
            where=where, strerror=exc.strerror
        ),
        EndReason.DISK_FULL if full else EndReason.LAUNCH_FAILED,
    )


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


def divide(
    files: Sequence[SourceFile],
    count: int,
    seed: int = 0,
    epoch: int = 0,
    *,
    metadata: bool = True,
) -> list[list[SourceFile]]:
    """Return the files of each of ``count`` tasks.

    The sizes of the parts are about equal, and every task computes the same parts.

    Parameters
    ----------
    seed, epoch
        Files of one size are distributed, and those of a part ordered, at random by these numbers.
        With 0 and 0 they are sorted by name.
    metadata
        Whether files with a name that begins with ``_`` or ``.`` describe the others
        (``_metadata``), so that every task gets them.
    """
    ordered = sorted(files)
    if seed or epoch:
        random.Random(f"{seed}:{epoch}").shuffle(ordered)  # noqa: S311 - not a secret
    loads = [(0, 0, task) for task in range(count)]
    tasks: list[list[int]] = [[] for _ in range(count)]
    for number in sorted(range(len(ordered)), key=lambda number: -ordered[number].size):
        if metadata and is_metadata(ordered[number].path):
            for part in tasks:
                part.append(number)
            continue
        size, items, task = loads[0]
        heapq.heapreplace(loads, (size + ordered[number].size, items + 1, task))
        tasks[task].append(number)
    return [[ordered[number] for number in sorted(part)] for part in tasks]


def is_metadata(path: str) -> bool:
    """Return whether a file describes others: its name begins with ``_`` or ``.``."""
    return path.rpartition("/")[2][:1] in ("_", ".")


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


def _check_paths(one: NamedInput, files: Sequence[SourceFile]) -> None:
    """Reject paths that lead out of the input's directory, or twice to one file."""
    seen = set()
    for file in files:
        parts = file.path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or file.path in seen:
            raise InputError(
                _("--input {one}: a file is named {entry!r}, which is not a valid name.").format(
                    one=one.name, entry=file.path
                )
            )
        seen.add(file.path)


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
