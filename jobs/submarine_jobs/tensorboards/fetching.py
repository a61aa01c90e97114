"""Copy the TensorBoard files of a job to this disk, incrementally.

A running job uploads its files in pieces; an ended job has complete files. Runs have the same names
before and after the end: ``<job>/...`` for the chief, ``<job>/worker-1/...`` for other tasks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import EVENT_FILE, assemble, is_below
from submarine_runtime.storage import Entry, NotFoundError, Store, make_directories, open_store
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job

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

    def __init__(self, folder: Path, limit: int) -> None:
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
    folder
        Directory of all runs; those of this job are in a subdirectory named by its id.
    check
        Called between blocks; raises an exception to stop early.

    Attributes
    ----------
    complete
        Whether the job has ended and all its files are copied.
    """

    def __init__(
        self, job: Job, folder: Path, quota: DiskQuota, check: Callable[[], None] = lambda: None
    ) -> None:
        self._job, self._quota, self._check = job, quota, check
        self._target = folder / job.id
        self._target.mkdir(mode=0o700, exist_ok=True)
        storage = job.directory.storage
        self._store: Store = open_store(storage.job_store(job.directory.path))
        self._chief: str | None = None
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
            self._chief = _directory_of(self._job.chief)
        # Check this first: if the record exists, all other files are complete.
        ended = self._store.exists(layout.RECORD)
        for entry in self._store.entries(layout.GROWING):
            if entry.is_directory and is_below(entry.name):
                place = f"{layout.GROWING}/{entry.name}"
                target = self._run(entry.name)
                assemble(self._store, place, str(target), self._check, self._quota.reserve)
        if ended:
            self._copy_complete()
        self.complete = ended
        return self._store.operations - before

    def _run(self, task: str) -> Path:
        """Return the directory of the runs of a task such as ``worker-1``."""
        return self._target if task == self._chief else self._target / task

    def _copy_complete(self) -> None:
        self._copy(layout.TENSORBOARD, self._target)
        for entry in self._store.entries(layout.TASKS):
            if is_below(entry.name):
                place = f"{layout.TASKS}/{entry.name}/{layout.TENSORBOARD}"
                self._copy(place, self._run(entry.name))

    def _copy(self, place: str, target: Path) -> None:
        for path, entry in self._files(place):
            here = target / path
            make_directories(str(here.parent))
            size = here.stat().st_size if here.exists() else 0
            with suppress(NotFoundError):
                if EVENT_FILE in entry.name and size <= entry.size:
                    # The copied pieces are the beginning of the file.
                    self._write(here, f"{place}/{path}", size)
                else:
                    whole = here.with_name(f".{entry.name}.part")
                    whole.unlink(missing_ok=True)
                    self._write(whole, f"{place}/{path}", 0)
                    whole.replace(here)

    def _write(self, here: Path, place: str, offset: int) -> None:
        with here.open("ab") as file:
            for block in self._store.stream(place, offset):
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
    role, index = layout.split_task(task)
    return f"{role}-{index}"


def _size_of(folder: Path) -> int:
    return sum(
        os.lstat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder)
        for name in names
    )
