"""Read training scalars from the growing files of a program: event files and Lightning's tables.

Event files are those of TensorBoard, ``event_files`` decodes them; a table is the ``metrics.csv``
of Lightning's ``CSVLogger``, which rewrites it when there is a new column.
"""

from __future__ import annotations

import os
import re
import stat
import time

from submarine_runtime.agent.measurement.event_files import FRAME, frames, newest_records, scalars

#: Seconds between two searches for new files; limits of depth and number.
SEARCH_SECONDS = 10.0
MAX_DEPTH = 4
MAX_FILES = 32
MAX_ENTRIES = 2000
#: Bytes read at once of an event file and of a table; bytes of the first line of a table.
MAX_READ = 1 << 20
MAX_ROWS = 1 << 16
MAX_HEAD = 1 << 13
#: Scalars that are remembered.
MAX_NAMES = 256
TABLE = "metrics.csv"
#: The part of a path that names the run: Lightning's "version_0", and the default of PyTorch and HF
#: with date and host, "Nov29_08-46-00_node7".
_RUN = re.compile(r"(?:^|/)(?:version_\d+|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_[^/]*)(?=/|$)")
_COLUMN = re.compile(r"[A-Za-z_][\w./@ -]{0,47}", re.ASCII)


class ScalarFiles:
    """The scalars in files of some directories: ``train/epoch_loss`` -> newest value.

    Parameters
    ----------
    directory
        Directory whose event files are named by their path.
    folders
        Directories in which libraries make one of their own for each run.

    Attributes
    ----------
    values
        The known scalars.
    """

    def __init__(self, directory: str, folders: tuple[str, ...] = ()) -> None:
        self._directory, self._folders = directory, folders
        #: Path of a file -> bytes read, and the prefix of its names.
        self._files: dict[str, tuple[int, str]] = {}
        self._next_search = 0.0
        self.values: dict[str, float] = {}

    def update(self, *, last: bool = False) -> dict[str, float]:
        """Read what is new and return the scalars in it; ``last``: search for files in any case."""
        now = time.monotonic()
        if last or now >= self._next_search:
            self._next_search = now + SEARCH_SECONDS
            self._search()
        found: dict[str, float] = {}
        for path in list(self._files):
            self._read(path, found)
        for name in list(found):
            if name in self.values or len(self.values) < MAX_NAMES:
                self.values[name] = found[name]
        return found

    def _search(self) -> None:
        known, self._files = self._files, {}
        roots = {os.path.realpath(folder) for folder in self._folders}
        found = [(path, root, True) for root in roots for path in _scalar_files(root)]
        found += [(path, self._directory, False) for path in _scalar_files(self._directory)]
        for path, root, of_library in found:
            prefix = os.path.relpath(os.path.dirname(path), root)
            if of_library:
                prefix = _RUN.sub("", prefix).strip("/")
            self._files[path] = (known.get(path, (0, ""))[0], "" if prefix == "." else prefix)

    def _read(self, path: str, found: dict[str, float]) -> None:
        offset, prefix = self._files[path]
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        try:
            size = os.fstat(descriptor).st_size
            if path.endswith(TABLE):
                values, offset = _rows(descriptor, offset, size)
            else:
                if offset < 0 or size - offset < FRAME:
                    return
                data = os.pread(descriptor, MAX_READ, offset)
                records, offset = frames(data, offset, size)
                values = dict(pair for one in newest_records(records) for pair in scalars(one))
        except OSError:
            return
        finally:
            os.close(descriptor)
        self._files[path] = (offset, prefix)
        for name, value in values.items():
            found[f"{prefix}/{name}" if prefix else name] = value


def _scalar_files(directory: str) -> list[str]:
    """Return the newest files below ``directory``, the oldest first, without following links."""
    found: list[tuple[float, str]] = []
    pending, seen = [(directory, 0)], 0
    while pending:
        folder, depth = pending.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > MAX_ENTRIES:
                pending.clear()
                break
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    pending.append((entry.path, depth + 1))
            elif ".tfevents." in entry.name or entry.name == TABLE:
                changed = _changed(entry.path)
                if changed is not None:
                    found.append((changed, entry.path))
    return [path for _, path in sorted(found)[-MAX_FILES:]]


def _changed(path: str) -> float | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_mtime if stat.S_ISREG(info.st_mode) else None


def _rows(descriptor: int, offset: int, size: int) -> tuple[dict[str, float], int]:
    """Return the newest value of each column in the new rows, and the next offset."""
    if size == offset:
        return {}, offset
    head, ended, _ = os.pread(descriptor, MAX_HEAD, 0).partition(b"\n")
    names = head.decode("utf-8", "replace").strip().split(",")
    if not ended or "step" not in names:
        return {}, offset
    first = len(head) + 1
    if offset > size or offset < first:
        offset = first  # A new file.
    # One byte more: a row that was cut, or rewritten with a new column, begins within a line.
    begin = max(offset, size - MAX_ROWS) - 1
    text = os.pread(descriptor, size - begin, begin)
    end = text.rfind(b"\n")
    if end < 0:
        return {}, offset
    values: dict[str, float] = {}
    for row in text[:end].split(b"\n")[1:]:
        fields = row.strip().split(b",")
        if len(fields) == len(names):
            for name, field in zip(names, fields):
                if field and name not in ("step", "epoch") and _COLUMN.fullmatch(name):
                    try:
                        values[name] = float(field)
                    except ValueError:
                        continue
    return values, begin + end + 1
