"""Make a directory hold exactly the files of a snapshot; unchanged files are not fetched.

The files are fetched to another directory, which then replaces the old one: an error leaves the
directory unchanged.
"""

from __future__ import annotations

import os
import shutil
from typing import Sequence

from submarine_runtime.snapshots.catalog import Piece
from submarine_runtime.storage import Fetching, Wanted, make_directories


def put_back(fetching: Fetching, root: str, pieces: Sequence[Piece]) -> None:
    """Make ``root`` hold ``pieces`` and nothing else.

    Raises
    ------
    DamagedError
        If the bytes are not those that were saved.
    StoreError, OSError
        If the store or the local disk failed.
    """
    aside, old = f"{root}.restoring", f"{root}.old"
    for leftover in (aside, old):
        shutil.rmtree(leftover, ignore_errors=True)
    make_directories(aside)
    wanted = []
    kept = []
    try:
        for piece in pieces:
            here = os.path.join(root, piece.path)
            there = os.path.join(aside, piece.path)
            if _same(here, piece):
                kept.append((here, there))
            else:
                wanted.append(
                    Wanted(
                        piece.source, there, piece.size, piece.offset, piece.crc, piece.modified_ns
                    )
                )
        fetching.fetch(wanted)
        for here, there in kept:
            make_directories(os.path.dirname(there))
            os.link(here, there)
        if os.path.isdir(root):
            os.rename(root, old)
        os.rename(aside, root)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _same(here: str, piece: Piece) -> bool:
    """Return whether the file was restored or saved from there, and has not changed since."""
    if piece.modified_ns is None or os.path.islink(here):
        return False
    try:
        info = os.stat(here)
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) == (piece.size, piece.modified_ns)
