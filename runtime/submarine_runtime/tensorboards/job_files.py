"""Copy the TensorBoard files of a job to this disk, incrementally.

A running job uploads its files in pieces; an ended job has complete files. Runs have the same names
before and after the end if the chief is known: ``<job>/...`` for the chief, ``<job>/worker-1/...``
for other tasks.
"""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Callable, Iterator

from submarine_runtime.files import replace_file
from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import EVENT_FILE, assemble, is_below
from submarine_runtime.storage import Entry, NotFoundError, Store, make_directories
from submarine_runtime.translation import _

_MAX_FILES = 20_000


class DiskQuotaError(Exception):
    """The files exceed the limit of disk space."""


class DiskQuota:
    """The limit of disk space for the files of one TensorBoard.

    Parameters
    ----------
    folder
        Directory of these files.
    limit
        Bytes.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._used = 0

    def reserve(self, size: int) -> None:
        """Reserve ``size`` bytes before they are written.

        Raises
        ------
        DiskQuotaError
            If the limit would be exceeded.
        """
        if self._used + size > self._limit:
            self._used = _size_of(self._folder)  # replaced files no longer count
        if self._used + size > self._limit:
            raise DiskQuotaError(
                _("there are more than {limit} MiB of TensorBoard files").format(
                    limit=self._limit >> 20
                )
            )
        self._used += size


class JobFiles:
    """Local copies of the files of one job.

    Parameters
    ----------
    place
        The job's directory in the store; empty for the store's own directory.
    target
        Local directory of the job's runs.
    chief
        The task whose runs have no directory of their own, such as ``worker:0``. Empty: unknown;
        while the job runs, each task has one.
    check
        Called between blocks; raises an exception to stop early.

    Attributes
    ----------
    complete
        Whether the job has ended and all its files are copied.
    """

    def __init__(
        self,
        store: Store,
        place: str,
        target: str,
        quota: DiskQuota,
        chief: Callable[[], str] = lambda: "",
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._place, self._target = store, place, target
        self._quota, self._check = quota, check
        self._find_chief = chief
        self._chief: str | None = None
        make_directories(target)
        self.complete = False

    @property
    def empty(self) -> bool:
        """Whether there is no event file yet."""
        found = (name for _, _, names in os.walk(self._target) for name in names)
        return not any(EVENT_FILE in name for name in found)

    def update(self) -> int:
        """Copy new data; return the number of NameNode operations.

        Raises
        ------
        StoreError, OSError, DiskQuotaError
            If it failed; the copied data is valid, and the next call continues.
        """
        if self.complete:
            return 0
        before = self._store.operations
        if self._chief is None:
            self._chief = _directory_of(self._find_chief())
        # Check this first: if the record exists, all other files are complete.
        ended = self._store.exists(self._file(layout.RECORD))
        growing = self._file(layout.GROWING)
        for entry in self._store.entries(growing):
            if entry.is_directory and is_below(entry.name):
                place = f"{growing}/{entry.name}"
                target = self._run(entry.name)
                assemble(self._store, place, target, self._check, self._quota.reserve)
        if ended:
            self._copy_complete()
        self.complete = ended
        return self._store.operations - before

    def _file(self, name: str) -> str:
        return posixpath.join(self._place, name)

    def _run(self, task: str) -> str:
        """Return the directory of the runs of a task such as ``worker-1``."""
        return self._target if task == self._chief else os.path.join(self._target, task)

    def _copy_complete(self) -> None:
        self._copy(self._file(layout.TENSORBOARD), self._target)
        tasks = self._file(layout.TASKS)
        for entry in self._store.entries(tasks):
            if is_below(entry.name):
                place = f"{tasks}/{entry.name}/{layout.TENSORBOARD}"
                self._copy(place, self._run(entry.name))

    def _copy(self, place: str, target: str) -> None:
        for path, entry in self._files(place):
            here = os.path.join(target, path)
            make_directories(os.path.dirname(here))
            size = os.stat(here).st_size if os.path.exists(here) else 0
            source = f"{place}/{path}"
            with suppress(NotFoundError):
                if EVENT_FILE in entry.name and size <= entry.size:
                    # The copied pieces are the beginning of the file.
                    with open(here, "ab") as file:
                        self._write(file, source, size)
                else:
                    replace_file(here, partial(self._write, source=source, offset=0))

    def _write(self, file: BinaryIO, source: str, offset: int) -> None:
        for block in self._store.stream(source, offset):
            self._check()
            self._quota.reserve(len(block))
            file.write(block)

    def _files(self, place: str) -> Iterator[tuple[str, Entry]]:
        pending, count = [""], 0
        while pending and count < _MAX_FILES:
            below = pending.pop()
            for entry in self._store.entries(f"{place}/{below}".rstrip("/")):
                path = f"{below}/{entry.name}".lstrip("/")
                if entry.name.startswith(layout.TEMPORARY_PREFIX) or not is_below(path):
                    continue
                if entry.is_directory:
                    pending.append(path)
                    continue
                count += 1
                yield path, entry


def _directory_of(task: str) -> str:
    if not task:
        return ""
    role, index = layout.split_task(task)
    return f"{role}-{index}"


def _size_of(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder)
        for name in names
    )
