"""Keep files unchanged during an upload by hard links.

A program may then delete an old checkpoint, or rename a new one over it, without affecting a
snapshot that is being uploaded. No data is copied.
"""

from __future__ import annotations

import os
import shutil
from typing import Mapping

from submarine_runtime.snapshots import Seen
from submarine_runtime.storage import make_directories


class Hold:
    """Hard links to files below ``root``, beside it on the same disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._place = f"{root}.held"
        self._names: dict[str, str] = {}

    def take(self, files: Mapping[str, Seen]) -> bool:
        """Link these files; return False if one has changed since the scan.

        On a disk without hard links they are read in place.
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
        """Return the path at which the linked file can be read."""
        return self._names.get(path) or os.path.join(self.root, path)

    def drop(self) -> None:
        """Remove all links."""
        self._names = {}
        shutil.rmtree(self._place, ignore_errors=True)
