"""Keep ``--checkpoint_path`` equal to the checkpoint directory, in the program's own names.

New files are uploaded under temporary names, then the manifest that lists them is published, and
then they are renamed. A reader of the manifest finds every byte, even if the writer dies. Only
files that an earlier manifest lists are deleted.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Iterator, Mapping

from submarine_runtime.snapshots.manifest import Manifest, ManifestEntry
from submarine_runtime.snapshots.scan import FileState
from submarine_runtime.snapshots.writer import FileReader
from submarine_runtime.storage import NotFoundError, Store

#: Control directory below the checkpoint path.
CONTROL = ".submarine"
MANIFEST = "manifest-"


def base_of(checkpoint_path: str, task: str, chief: bool) -> str:
    """Return the path of a task's checkpoints: the path itself for the chief, else one below it."""
    root = checkpoint_path.rstrip("/")
    return root if chief else f"{root}/{CONTROL}/tasks/{task.replace(':', '-')}"


def manifests(store: Store, base: str) -> Iterator[tuple[str, Manifest]]:
    """Yield name and content of the manifests below a checkpoint path, the newest first."""
    names = [entry.name for entry in store.entries(f"{base}/{CONTROL}")]
    for name in sorted((name for name in names if name.startswith(MANIFEST)), reverse=True):
        data = store.read(f"{base}/{CONTROL}/{name}")
        try:
            if data is not None:
                yield name, Manifest.from_bytes(data)
        except ValueError:
            continue  # Another program's file.


class CheckpointPathWriter:
    """The writer for one attempt of one task.

    Parameters
    ----------
    base
        See ``base_of``; a path in the store's file system.
    writer
        Unique to job and attempt: ``digits-20261120-7f3a-e1-a1``.
    """

    def __init__(self, store: Store, base: str, writer: str, reader: FileReader) -> None:
        self._store = store
        self._base = base
        self._writer = writer
        self._reader = reader
        self._newest: Manifest | None = None
        self._is_complete = False
        self._staged: dict[FileState, ManifestEntry] = {}
        self._directories: set[str] = set()

    def publish(self, files: Mapping[str, FileState]) -> int:
        """Update the path; return the number of bytes uploaded.

        Raises
        ------
        ChangedError
            If a file changed during the upload; nothing is published then.
        StoreError
            If the store failed; a further call continues.
        """
        if not self._is_complete:
            self._complete_manifest()
        there = {file.path: file for file in self._newest.files} if self._newest else {}
        number = self._newest.number + 1 if self._newest else 0
        listed: list[ManifestEntry] = []
        sent = 0
        for path, state in sorted(files.items()):
            old = there.get(path)
            if old is not None and (old.size, old.modified_ns) == (state.size, state.modified_ns):
                listed.append(replace(old, data=""))
                continue
            if state not in self._staged:
                self._staged[state] = self._upload(path, state, number)
                sent += state.size
            listed.append(replace(self._staged[state], path=path))
        if any(file.data for file in listed) or len(listed) != len(there):
            manifest = Manifest(number, time.time(), tuple(listed))
            name = f"{MANIFEST}{number:09d}-{self._writer}.json"
            self._is_complete = False
            self._store.publish(f"{self._base}/{CONTROL}/{name}", manifest.to_bytes())
            self._complete_manifest()
        return sent

    def _complete_manifest(self) -> None:
        """Complete the newest manifest: its writer may have died before the renames."""
        self._newest = None
        now: set[str] = set()
        for name, manifest in manifests(self._store, self._base):
            if self._newest is None:
                self._newest = manifest
                now = {file.path for file in manifest.files}
                for file in manifest.files:
                    if file.data:
                        self._place(file)
                continue
            for file in manifest.files:
                if file.path not in now:
                    self._store.delete(f"{self._base}/{file.path}")
            self._store.delete(f"{self._base}/{CONTROL}/{name}")
        self._staged = {}
        self._is_complete = True

    def _upload(self, path: str, state: FileState, number: int) -> ManifestEntry:
        staged = f"{CONTROL}/new-{self._writer}/{number:09d}-{len(self._staged):05d}"
        saved: list[ManifestEntry] = []
        blocks = self._reader.blocks([(path, state)], saved)
        self._store.put(f"{self._base}/{staged}", blocks, state.size)
        return replace(saved[0], data=staged)

    def _place(self, file: ManifestEntry) -> None:
        directory = file.path.rpartition("/")[0]
        if directory and directory not in self._directories:
            self._store.make_directory(f"{self._base}/{directory}")
            self._directories.add(directory)
        try:
            self._store.move(f"{self._base}/{file.data}", f"{self._base}/{file.path}")
        except NotFoundError:
            pass  # It has been renamed already.

    def close(self) -> None:
        """Remove the directory of temporary names."""
        if self._is_complete:
            self._store.delete(f"{self._base}/{CONTROL}/new-{self._writer}", recursive=True)
