"""Brings the TensorBoard files of one job to this disk, and what is new whenever it is asked.

A running job ships its files in pieces (``agent.growing``); an ended one has them whole. Runs have
the same names before and after the end: the chief's are ``<job>/...``, those of any other task
``<job>/worker-1/...``. Runs no thread and starts no TensorBoard.
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

if TYPE_CHECKING:
    from submarine_jobs.client import Job

_MAX_FILES = 20_000


class NoRoomError(Exception):
    """The files take more room on this disk than they may."""


class Room:
    """How much all files of one TensorBoard may take.

    Parameters
    ----------
    folder
        Holds all of them.
    limit
        Bytes.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._taken = 0

    def take(self, size: int) -> None:
        """Note that ``size`` bytes are about to be written.

        Raises
        ------
        NoRoomError
            If they are too many.
        """
        if self._taken + size > self._limit:
            self._taken = _size_of(self._folder)  # files that were replaced count no more
        if self._taken + size > self._limit:
            raise NoRoomError(f"there are more than {self._limit >> 20} MiB of TensorBoard files")
        self._taken += size


class JobFiles:
    """The files of one job, here.

    Parameters
    ----------
    folder
        Where the runs of all jobs lie; this job's are in a directory called by its id.
    check
        Called between blocks; raises what is to end the work early.

    Attributes
    ----------
    complete
        Whether the job has ended and all that it left is here.
    """

    def __init__(
        self, job: Job, folder: Path, room: Room, check: Callable[[], None] = lambda: None
    ) -> None:
        self._job, self._room, self._check = job, room, check
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

    def bring(self) -> int:
        """Bring what is new; returns what that cost in operations of a NameNode.

        Raises
        ------
        StoreError, OSError, NoRoomError
            If it could not be done; what is here is right, and the next call goes on.
        """
        if self.complete:
            return 0
        before = self._store.operations
        if self._chief is None:
            self._chief = _directory_of(self._job.chief)
        # First this: a record that is there means that everything else is.
        ended = self._store.exists(layout.RECORD)
        for entry in self._store.entries(layout.GROWING):
            if entry.is_directory and is_below(entry.name):
                place = f"{layout.GROWING}/{entry.name}"
                target = self._run(entry.name)
                assemble(self._store, place, str(target), self._check, self._room.take)
        if ended:
            self._bring_whole()
        self.complete = ended
        return self._store.operations - before

    def _run(self, task: str) -> Path:
        """Where the runs of ``worker-1`` lie."""
        return self._target if task == self._chief else self._target / task

    def _bring_whole(self) -> None:
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
                    # The pieces that came before are the beginning of it.
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
                self._room.take(len(block))
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
