"""Write snapshots of one directory: only new bytes are uploaded, small files are packed into one.

A snapshot is a manifest; the files with its bytes never change and are beside it, in the directory
of this attempt. The two newest snapshots are kept, and those that the coordinator names.
``agent.sync`` decides when to take one.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Callable, Iterable, Iterator, Mapping, Sequence
from zlib import crc32

from submarine_runtime.snapshots.manifest import Manifest, ManifestEntry
from submarine_runtime.snapshots.scan import (
    FileState,
    is_metadata,
    metadata_text,
    parts_of,
    step_of,
)
from submarine_runtime.storage import Store, StoreError

COPY_BYTES = 1 << 18
#: Smaller files share one file of the store, because the NameNode counts files, not bytes.
PACKED_BELOW = 8 << 20
#: If there are more packs than this, the emptiest half of them is packed again.
MAX_PACKS = 32
KEEP = 2


class ChangedError(Exception):
    """A file changed while it was read: the snapshot would be inconsistent."""


class FileReader:
    """Reads local files for an upload and computes the CRC-32 of each.

    Parameters
    ----------
    locate
        Path below the directory -> path at which the file can be read.
    check
        Called before each block; an exception ends the upload.
    """

    def __init__(self, locate: Callable[[str], str], check: Callable[[], None]) -> None:
        self.locate = locate
        self._check = check

    def blocks(
        self, files: Sequence[tuple[str, FileState]], into: list[ManifestEntry]
    ) -> Iterator[bytes]:
        """Yield the bytes of all files in sequence; their entries are added to ``into``.

        Raises
        ------
        ChangedError
            If a file has changed since the scan.
        """
        offset = 0
        for path, state in files:
            crc, left = 0, state.size
            try:
                with open(self.locate(path), "rb") as file:
                    while left > 0:
                        self._check()
                        block = file.read(min(COPY_BYTES, left))
                        if not block:
                            raise ChangedError(path)
                        crc = crc32(block, crc)
                        left -= len(block)
                        yield block
                    info = os.fstat(file.fileno())
            except OSError as exc:
                raise ChangedError(path) from exc
            if (info.st_size, info.st_mtime_ns) != (state.size, state.modified_ns):
                raise ChangedError(path)
            into.append(ManifestEntry(path, state.size, state.modified_ns, crc, offset=offset))
            offset += state.size


class SnapshotWriter:
    """The snapshots of one directory of one attempt.

    Parameters
    ----------
    directory
        Directory of the attempt in the job directory.
    part
        ``checkpoints`` or ``model``; the names of all files begin with it.
    """

    def __init__(self, store: Store, directory: str, part: str, reader: FileReader) -> None:
        self._store = store
        self._directory = directory
        self._part = part
        self._reader = reader
        self._saved: dict[FileState, ManifestEntry] = {}
        self._data: set[str] = set()
        self._kept: list[tuple[int, frozenset[str]]] = []
        self._held: frozenset[int] = frozenset()
        self.number = 0
        self.round = 0
        self.world = 0
        self.began = 0.0
        self.newest: Manifest | None = None

    def publish(self, files: Mapping[str, FileState]) -> int:
        """Take a snapshot of ``files``, path below the root -> state; return bytes uploaded.

        Raises
        ------
        ChangedError
            If a file changed during the upload; nothing is published then.
        StoreError
            If the store failed; uploaded files are not uploaded again the next time.
        """
        self.number += 1
        again = self._crowded(files)
        new = [item for item in sorted(files.items()) if self._old(item[1], again) is None]
        for name, group in self._groups(new):
            # Recorded first, because the result of a failed upload is unknown.
            self._data.add(name)
            for (_, state), saved in zip(group, self._upload(name, group)):
                self._saved[state] = saved
        entries = {state: self._saved[state] for state in files.values()}
        listed = tuple(replace(entries[state], path=path) for path, state in sorted(files.items()))
        steps, needs = self._metadata(files)
        manifest = Manifest(
            self.number,
            time.time(),
            listed,
            round=self.round,
            steps=steps,
            began=self.began,
            needs=needs,
            world=self.world,
        )
        self._store.publish(self._name(self.number), manifest.to_bytes())
        self._saved, self.newest = entries, manifest
        self._kept.append((self.number, frozenset(saved.data for saved in listed)))
        self._prune()
        return sum(state.size for _, state in new)

    def _metadata(
        self, files: Mapping[str, FileState]
    ) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
        """Return metadata file -> the step in it, and -> the names of files in it."""
        steps, needs = {}, {}
        for path in filter(is_metadata, files):
            text = metadata_text(self._reader.locate(path), files[path])
            if text is None:
                raise ChangedError(path)
            if step := step_of(path, text):
                steps[path] = step
            if parts := parts_of(path, text):
                needs[path] = parts
        return steps, needs

    @property
    def kept(self) -> list[int]:
        """Numbers of the snapshots that are not deleted, the oldest first."""
        return [number for number, _ in self._kept]

    def hold(self, numbers: Iterable[int]) -> bool:
        """Keep these snapshots besides the two newest ones; return False if one is deleted already.

        In that case the previous numbers remain.
        """
        wanted = frozenset(numbers)
        if not wanted <= set(self.kept):
            return False
        self._held = wanted
        self._prune()
        return True

    def answer(self, requested: int) -> None:
        """Record in the newest snapshot that it answers a round; raise StoreError."""
        newest = self.newest
        if newest is not None and newest.answered < requested:
            noted = replace(newest, answered=requested)
            self._store.publish(self._name(newest.number), noted.to_bytes())
            self.newest = noted

    def _name(self, number: int) -> str:
        return f"{self._directory}/{self._part}-{number:06d}.json"

    def _old(self, state: FileState, again: frozenset[str]) -> ManifestEntry | None:
        """Return the entry of bytes that are stored already; a renamed file counts as the same."""
        saved = self._saved.get(state)
        return None if saved is None or saved.data in again else saved

    def _groups(
        self, new: Sequence[tuple[str, FileState]]
    ) -> Iterator[tuple[str, list[tuple[str, FileState]]]]:
        stem = f"{self._part}-{self.number:06d}"
        small = [item for item in new if item[1].size < PACKED_BELOW]
        if small:
            yield f"{stem}.pack", small
        large = [item for item in new if item[1].size >= PACKED_BELOW]
        for number, item in enumerate(large):
            yield f"{stem}.{number:04d}", [item]

    def _upload(self, name: str, group: Sequence[tuple[str, FileState]]) -> list[ManifestEntry]:
        saved: list[ManifestEntry] = []
        length = sum(state.size for _, state in group)
        self._store.put(f"{self._directory}/{name}", self._reader.blocks(group, saved), length)
        return [ManifestEntry(s.path, s.size, s.modified_ns, s.crc, name, s.offset) for s in saved]

    def _crowded(self, files: Mapping[str, FileState]) -> frozenset[str]:
        """Return the packs to be packed again if there are too many."""
        live: dict[str, int] = {}
        for state in set(files.values()):
            saved = self._saved.get(state)
            if saved is not None and saved.data.endswith(".pack"):
                live[saved.data] = live.get(saved.data, 0) + saved.size
        if len(live) < MAX_PACKS:
            return frozenset()
        return frozenset(sorted(live, key=lambda name: live[name])[: MAX_PACKS // 2])

    def _prune(self) -> None:
        """Delete what no kept snapshot needs, the manifest before the files that it lists."""
        try:
            for item in [item for item in self._kept[:-KEEP] if item[0] not in self._held]:
                self._store.delete(self._name(item[0]))
                self._kept.remove(item)
            needed = frozenset().union(*(data for _, data in self._kept))
            for name in sorted(self._data - needed):
                self._store.delete(f"{self._directory}/{name}")
                self._data.discard(name)
        except StoreError:
            pass  # Retried with the next snapshot.
