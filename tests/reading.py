"""Read a folder that other processes change: files that disappear are skipped.

``Path.rglob`` fails there now and then: a folder that it has just seen may be gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(root: Path) -> Iterator[Path]:
    """Every file at any depth; nothing where there is no such folder."""
    for folder, _, names in os.walk(root):
        for name in names:
            yield Path(folder, name)


def content(path: Path) -> bytes:
    """What a file holds; nothing where it is gone, or is no plain file."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""
