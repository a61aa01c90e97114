"""Keeps files as they are at one moment while they are uploaded, by a second name for each.

A program that deletes an old checkpoint, or renames a new one over it, then takes nothing away from
a snapshot that is on its way. Copies no byte.
"""

from __future__ import annotations

import os
import shutil
from typing import Mapping

from submarine_runtime.snapshots import Seen
from submarine_runtime.storage import make_directories


class Hold:
    """Second names for files below ``root``, beside it on the same disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._place = f"{root}.held"
        self._names: dict[str, str] = {}

    def take(self, files: Mapping[str, Seen]) -> bool:
        """Hold these files; False when one is not what was seen any more.

        On a disk without hard links they are read where they are.
        """
        self.drop()
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

    def where(self, path: str) -> str:
        """Where the held file can be read."""
        return self._names.get(path) or os.path.join(self.root, path)

    def drop(self) -> None:
        """Hold nothing."""
        self._names = {}
        shutil.rmtree(self._place, ignore_errors=True)
