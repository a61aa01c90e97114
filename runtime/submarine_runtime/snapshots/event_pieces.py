"""Store growing TensorBoard files in pieces: write the pieces, and assemble them.

``growing/worker-0/e1-a1/<path of the file>/<offset of the piece's first byte>``. An event file only
grows, so a piece never changes. Many small pieces are replaced by one that begins at the offset of
the first of them. Any other file is one piece, which is replaced when the file changes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Callable, Iterator, Mapping, NamedTuple

from submarine_runtime.protocol import layout
from submarine_runtime.snapshots.manifest import is_below
from submarine_runtime.snapshots.scan import FileState
from submarine_runtime.snapshots.writer import ChangedError, FileReader
from submarine_runtime.storage import Entry, NotFoundError, Store, make_directories

EVENT_FILE = "tfevents"
LARGEST_PIECE = 16 << 20
#: Other files that are larger than this are saved only at the end.
LARGEST_OTHER = 64 << 20
#: Number of pieces of one level that are merged into one of the next.
MERGE = 16


def task_directory(task: str) -> str:
    """Return the directory of a task's pieces: ``growing/worker-0``."""
    role, index = layout.split_task(task)
    return f"{layout.GROWING}/{role}-{index}"


class _Piece(NamedTuple):
    offset: int
    length: int
    level: int


class PieceWriter:
    """Ships the pieces of one attempt.

    Parameters
    ----------
    directory
        Directory of the attempt in the job directory.
    shipped
        Path -> bytes that earlier attempts have shipped.
    """

    def __init__(
        self,
        store: Store,
        directory: str,
        root: str,
        reader: FileReader,
        shipped: Mapping[str, int],
    ) -> None:
        self._store = store
        self._directory = directory
        self._root = root
        self._reader = reader
        self._shipped = dict(shipped)
        self._pieces: dict[str, list[_Piece]] = {}
        self._others: dict[str, FileState] = {}

    def ship(self, files: Mapping[str, FileState], before: Mapping[str, FileState]) -> None:
        """Ship what is new; ``before`` is the result of the previous scan.

        Raises
        ------
        StoreError
            If the store failed; a further call continues.
        """
        for path, state in sorted(files.items()):
            if _grows(path):
                self._grow(path, state.size)
            elif state == before.get(path):
                self._replace(path, state)

    def _grow(self, path: str, size: int) -> None:
        shipped = self._shipped.get(path, 0)
        if size < shipped:
            # Another file of the same name: delete the pieces of the previous one.
            self._store.delete(f"{self._directory}/{path}", recursive=True)
            self._pieces.pop(path, None)
            shipped = self._shipped[path] = 0
        while shipped < size:
            length = min(size - shipped, LARGEST_PIECE)
            self._upload(path, shipped, length)
            self._pieces.setdefault(path, []).append(_Piece(shipped, length, 0))
            shipped += length
            self._shipped[path] = shipped
        self._merge(path)

    def _merge(self, path: str) -> None:
        """Merge pieces like carries of a counter: each byte is uploaded only a few times."""
        pieces = self._pieces.get(path, [])
        while True:
            last = pieces[-MERGE:]
            if len(last) < MERGE or last[0].level != last[-1].level:
                return
            offset, length = last[0].offset, sum(piece.length for piece in last)
            if length > LARGEST_PIECE * MERGE:
                return
            self._upload(path, offset, length)
            pieces[-MERGE:] = [_Piece(offset, length, last[0].level + 1)]
            for piece in last[1:]:
                self._store.delete(self._name(path, piece.offset))

    def _replace(self, path: str, state: FileState) -> None:
        if self._others.get(path) == state or state.size > LARGEST_OTHER:
            return
        if path in self._shipped and path not in self._others:
            self._others[path] = state  # Restored from an earlier attempt.
            return
        with suppress(ChangedError):
            blocks = self._reader.blocks([(path, state)], [])
            self._store.put(self._name(path, 0), blocks, state.size)
            self._others[path] = state

    def _upload(self, path: str, offset: int, length: int) -> None:
        source = os.path.join(self._root, path)
        self._store.upload(self._name(path, offset), source, offset, length)

    def _name(self, path: str, offset: int) -> str:
        return f"{self._directory}/{path}/{offset:012d}"


def pieces_of(store: Store, directory: str) -> dict[str, list[tuple[Entry, str]]]:
    """Return the path of each file -> its pieces and their paths, over all attempts.

    Parameters
    ----------
    directory
        Of a task: ``growing/worker-0``.
    """
    found: dict[str, list[tuple[Entry, str]]] = {}
    for attempt in sorted(store.entries(directory), key=_age):
        if layout.parse_attempt(attempt.name) is None:
            continue
        pending = [""]
        while pending:
            path = pending.pop()
            place = f"{directory}/{attempt.name}/{path}".rstrip("/")
            for entry in store.entries(place):
                if entry.is_directory:
                    pending.append(f"{path}/{entry.name}".lstrip("/"))
                elif entry.name.isdigit():
                    found.setdefault(path, []).append((entry, f"{place}/{entry.name}"))
    return found


def _age(entry: Entry) -> tuple[int, int]:
    return layout.parse_attempt(entry.name) or (0, 0)


def assemble(
    store: Store,
    directory: str,
    target: str,
    check: Callable[[], None] = lambda: None,
    check_space: Callable[[int], None] = lambda _: None,
) -> dict[str, int]:
    """Assemble the files of a task in a local directory; return path -> local length.

    Call it again to update the files: only what is new is read. A file that is longer than its
    pieces is not changed.

    Parameters
    ----------
    directory
        Directory of the task's pieces: ``growing/worker-0``.
    target
        The local directory.
    check
        Called between blocks; an exception ends the transfer.
    check_space
        Called with the number of bytes to write next; raises if there is no space.

    Raises
    ------
    StoreError, OSError
        If the store or the local disk failed; the files are valid as far as they go.
    """
    lengths: dict[str, int] = {}
    for path, pieces in pieces_of(store, directory).items():
        place = os.path.join(target, path)
        if not is_below(path):
            continue
        make_directories(os.path.dirname(place))
        check()
        if not _grows(path):
            pieces = [max(pieces, key=lambda piece: piece[0].modified)]
        with open(place, "ab") as file, suppress(NotFoundError):  # Merged in the meantime: retry.
            if not _grows(path) and os.stat(place).st_mtime < pieces[0][0].modified:
                file.truncate(0)
            for block in _missing(store, pieces, os.stat(place).st_size):
                check_space(len(block))
                file.write(block)
                check()
        lengths[path] = os.stat(place).st_size
    return lengths


def shipped_lengths(store: Store, directory: str) -> dict[str, int]:
    """Return the path of each file of a task -> its length in pieces without a gap."""
    lengths = {}
    for path, pieces in pieces_of(store, directory).items():
        end = 0
        for offset, size in sorted((int(entry.name), entry.size) for entry, _ in pieces):
            if offset <= end:
                end = max(end, offset + size)
        lengths[path] = end
    return lengths


def _grows(path: str) -> bool:
    return EVENT_FILE in path.rpartition("/")[2]


def _missing(store: Store, pieces: list[tuple[Entry, str]], at: int) -> Iterator[bytes]:
    """Yield the bytes from ``at`` on, as far as the pieces have no gap."""
    # Of two pieces with the same offset the longer is the newer.
    for entry, place in sorted(pieces, key=lambda piece: (int(piece[0].name), -piece[0].size)):
        offset = int(entry.name)
        if offset > at:
            return
        if offset + entry.size > at:
            for block in store.stream(place, at - offset):
                at += len(block)
                yield block
