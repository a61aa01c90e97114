"""Decide when to take a snapshot of a directory that a program writes, and take it.

When nothing has changed for two scans; in a directory that always changes, when no process writes
except to logs that stay open. ``snapshots.writer`` and ``snapshots.checkpoint_path`` write the
snapshots.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Callable, Mapping

from submarine_runtime.snapshots import (
    KEEP,
    STATE_FILE,
    ChangedError,
    FileState,
    SnapshotWriter,
    is_being_saved,
    is_coherent,
    is_complete,
    scan_directory,
)
from submarine_runtime.storage import make_directories

if TYPE_CHECKING:
    from submarine_runtime.snapshots import CheckpointPathWriter

#: Seconds for which a directory may change while no process has a file open in it, and minimum age
#: of its last change then: a checkpoint of several files is not taken between two of them.
QUIET_SECONDS = 3.0
LAST_CHANGE = 0.15
#: An open file of at least this size is considered a checkpoint, not a log.
LARGE = 1 << 20


class DirectorySync:
    """One directory of one attempt.

    Parameters
    ----------
    part
        ``checkpoints`` or ``model``.
    max_wait
        Seconds to wait for files that are open for writing. After that a snapshot leaves out the
        files that were open during the whole time; the wait for a large file is ten times as long,
        because the rest of a checkpoint may still be written.
    own
        Leaves out the files of the directory that are not the program's.
    is_running
        See ``SyncThread``.
    """

    def __init__(
        self,
        links: HardLinks,
        part: str,
        writer: SnapshotWriter,
        max_wait: float,
        own: Callable[[Mapping[str, FileState]], dict[str, FileState]] = dict,
        is_running: Callable[[], bool] = lambda: True,
    ) -> None:
        self.part = part
        self._own = own
        self._is_running = is_running
        self.mirror: CheckpointPathWriter | None = None
        self.busy = False
        self.given_up = False
        self.number = 0
        self.files = 0
        self.scan_seconds = 0.0
        #: ``checkpoint_began`` of ``preparation.input_streams``; None: the time is not needed.
        self.time_of: Callable[..., float] | None = None
        self._quiet = 0.0
        self._links = links
        self._root = links.root
        self.writer = writer
        self._max_wait = max_wait
        self._before: dict[str, FileState] = {}
        self._published: dict[str, FileState] = {}
        self._mirrored: dict[str, FileState] | None = None
        self._complete: set[FileState] = set()
        self._changing_since: float | None = None
        self._always_open: set[str] | None = None
        self._empty = True

    def begin(self) -> None:
        """Scan the directory before the program starts: its files were restored from a snapshot."""
        try:
            self._quiet = time.time()
            self._published = self._before = self._scan()
        except OSError:
            return
        self._complete = set(self._before.values())
        self._empty = not self._before

    def _scan(self) -> dict[str, FileState]:
        return self._own(scan_directory(self._root))

    @property
    def is_independent(self) -> bool:
        """Whether earlier attempts' snapshots are no longer needed."""
        least = KEEP if self.part == "checkpoints" else 1
        return self.number >= least or (self._empty and self.part != "checkpoints")

    def publish_if_due(self) -> int | None:
        """Take a snapshot if it is due; return the number of bytes uploaded, or None.

        Raises
        ------
        ChangedError, StoreError, OSError
            It was not taken; ``OSError`` if the directory cannot be scanned.
        """
        began, spent, now = time.monotonic(), time.thread_time(), time.time()
        files = self._scan()
        if files == self._published:
            self._quiet = now
        self.scan_seconds = time.thread_time() - spent
        before, self._before = self._before, files
        self._empty = self._empty and not files
        if not files or not self._due(files):
            self._reset()
            return None
        self.busy = True
        unfinished = {path for path, seen in files.items() if not self._is_whole(path, seen)}
        if unfinished or any(before.get(path) != seen for path, seen in files.items()):
            left_out = self._left_out(files, unfinished, began)
            if left_out is None:
                return None
            files = {path: seen for path, seen in files.items() if path not in left_out}
            if not files or not self._due(files):
                return None
        sent = self._publish(files)
        self._reset()
        return sent

    def _reset(self) -> None:
        self.busy, self._changing_since, self._always_open = False, None, None

    def _left_out(
        self, files: Mapping[str, FileState], unfinished: set[str], now: float
    ) -> set[str] | None:
        """Return what a snapshot of a changing directory would leave out; None: wait."""
        if self._changing_since is None or self._always_open is None:
            self._changing_since, self._always_open = now, set(unfinished)
        self._always_open &= unfinished
        if unfinished - self._always_open:
            return None
        max_wait = min(QUIET_SECONDS, self._max_wait)
        if unfinished:
            large = any(files[path].size >= LARGE for path in unfinished)
            max_wait = self._max_wait * (10 if large else 1)
        changed = max(
            (s.modified_ns for path, s in files.items() if path not in unfinished), default=0
        )
        if now - self._changing_since < max_wait or time.time() - changed / 1e9 < LAST_CHANGE:
            return None
        return unfinished

    def publish_last(self, whole: bool, outputs_follow: bool) -> None:
        """Take the last snapshot, unless a file is incomplete.

        Parameters
        ----------
        whole
            Archives with an end, and all other files, are complete. False: only files that were
            complete before.
        """
        files = self._scan()
        doubtful = {path: seen for path, seen in files.items() if seen not in self._complete}
        if whole:
            places = [(os.path.join(self._root, path), seen) for path, seen in doubtful.items()]
            whole = all(is_complete(place, seen.size) for place, seen in places)
        if files and (whole or not doubtful):
            self._publish(files, outputs_follow)
        if self.mirror is not None:
            self.mirror.close()

    def _due(self, files: dict[str, FileState]) -> bool:
        mirrored = self.mirror is None or self._mirrored is None or files == self._mirrored
        return files != self._published or not mirrored

    def _is_whole(self, path: str, seen: FileState) -> bool:
        if seen not in self._complete:
            whole = is_complete(os.path.join(self._root, path), seen.size)
            # Checked last: the files of a program that has ended are closed, complete or not.
            if not whole or not self._is_running():
                return False
            self._complete.add(seen)
        return True

    def _publish(self, files: dict[str, FileState], mirror_only: bool = False) -> int:
        known = set(self._published.values())
        new = {path: seen for path, seen in files.items() if seen not in known}
        try:
            # After all files are linked, they must still be unchanged: the snapshot is consistent.
            if not self._links.create(new) or not self._unchanged(files):
                raise ChangedError(self._root)
            return self._send(files, mirror_only)
        finally:
            self._links.remove()

    def _unchanged(self, files: Mapping[str, FileState]) -> bool:
        now = self._scan()
        named = {path for path in now if path.rpartition("/")[2] == STATE_FILE}
        same = all(now.get(path) == seen for path, seen in files.items())
        whole = same and named <= files.keys() and is_coherent(self._root, files)
        return whole and not is_being_saved(files, self._published)

    def _send(self, files: dict[str, FileState], mirror_only: bool) -> int:
        sent = 0
        if files != self._published and not mirror_only:
            if self.time_of is not None:
                began = self.time_of(
                    files, self._published, self._quiet, self._links.path_of, self.writer
                )
                self.writer.began = began or self.writer.began
            sent += self.writer.publish(files)
            self._published = files
            self.number += 1
            self.files = len(files)
        if self.mirror is not None and files != self._mirrored:
            self._mirrored = {}  # Outdated until the upload has succeeded.
            sent += self.mirror.publish(files)
            self._mirrored = files
        self._complete.intersection_update(self._before.values())
        return sent


class HardLinks:
    """Hard links to files below ``root``, beside it on the same disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._place = f"{root}.held"
        self._names: dict[str, str] = {}

    def create(self, files: Mapping[str, FileState]) -> bool:
        """Link these files; return False if one has changed since the scan.

        On a disk without hard links they are read in place.
        """
        self.remove()
        make_directories(self._place)
        for number, (path, seen) in enumerate(files.items()):
            name = os.path.join(self._place, str(number))
            try:
                os.link(os.path.join(self.root, path), name, follow_symlinks=False)
            except FileNotFoundError:
                return False
            except OSError:
                continue
            info = os.lstat(name)
            if (info.st_ino, info.st_size, info.st_mtime_ns) != seen:
                return False
            self._names[path] = name
        return True

    def path_of(self, path: str) -> str:
        """Return the path at which the linked file can be read."""
        return self._names.get(path) or os.path.join(self.root, path)

    def remove(self) -> None:
        """Remove all links."""
        self._names = {}
        shutil.rmtree(self._place, ignore_errors=True)
