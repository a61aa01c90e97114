"""Pack an environment into one ``.tar.gz``, compressed on all cores.

The content digest covers names, modes and bytes, not times, so two machines with the same
environment share one archive. Uploads nothing (``provide``).
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from submarine_jobs.environments.inventory import Item, Layout
from submarine_jobs.environments.relocation import relocated

#: Least effort: twice as fast as the usual, for a tenth more bytes.
LEVEL = 1
_BLOCK = 4 << 20
_READ = 1 << 20
#: Runs the interpreter beside the script; both shell and Python read it.
_SHEBANG = b"#!/bin/sh\n'''exec' \"$(dirname \"$0\")/python3\" \"$0\" \"$@\"\n' '''\n"
#: Times in archives: nothing depends on them but byte code, which keeps its source's.
Progress = Callable[[int, int], None]


class ParallelGzip(io.RawIOBase):
    """A file object that compresses what is written into ``target``: one gzip member a block.

    Members one after the other are one gzip file (RFC 1952, section 2.2); ``gzip -d``, Python and
    Java read them as such. zlib lets other threads run meanwhile.
    """

    def __init__(self, target: BinaryIO, threads: int) -> None:
        self._target = target
        self._pool = ThreadPoolExecutor(threads, "submarine-gzip")
        self._waiting: deque[Future[bytes]] = deque()
        self._most = threads + 2
        self._buffer = bytearray()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        """Take ``data``; blocks while the compressors are behind."""
        self._buffer += data
        while len(self._buffer) >= _BLOCK:
            self._submit(bytes(self._buffer[:_BLOCK]))
            del self._buffer[:_BLOCK]
        return len(data)

    def _submit(self, block: bytes) -> None:
        self._waiting.append(self._pool.submit(_member, block))
        while len(self._waiting) > self._most:
            self._target.write(self._waiting.popleft().result())

    def finish(self) -> None:
        """Compress the rest."""
        if self._buffer:
            self._submit(bytes(self._buffer))
            self._buffer.clear()
        while self._waiting:
            self._target.write(self._waiting.popleft().result())
        self._pool.shutdown()


def _member(block: bytes) -> bytes:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)
    return compressor.compress(block) + compressor.flush()


def content_digest(items: Sequence[Item], layout: Layout, progress: Progress | None = None) -> str:
    """SHA-256 over what will be in the archive: names, modes and bytes, in order of name.

    Parameters
    ----------
    progress
        Told of bytes read so far and in all, after each file.
    """
    total, done = sum(item.size for item in items), 0
    digest = hashlib.sha256(b"submarine environment 2\n")
    for item in sorted(items, key=lambda item: item.name):
        if not item.counts:
            continue
        digest.update(f"{item.name}\0{_mode(item):o}\0".encode())
        with open(item.source, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
        done += item.size
        if progress is not None:
            progress(done, total)
    digest.update(layout.version.encode())
    return digest.hexdigest()


def write_archive(
    items: list[Item], layout: Layout, target: Path, progress: Progress | None = None
) -> int:
    """Write the archive; its size in bytes.

    Parameters
    ----------
    progress
        Told of bytes read so far and in all, a few times a second.

    Raises
    ------
    OSError
        If a file cannot be read, or the disk is full.
    """
    total = sum(item.size for item in items) or 1
    done = 0
    threads = max(1, min(8, os.cpu_count() or 1))
    with target.open("wb") as file:
        stream = ParallelGzip(file, threads)
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for item in sorted(items, key=lambda item: item.name):
                _add(tar, item, layout)
                done += item.size
                if progress is not None:
                    progress(done, total)
            for name in ("python3", "python"):
                tar.addfile(_link(f"bin/{name}", f"python{layout.version}"))
            # Debian's own Python looks for packages there, and not in site-packages.
            tar.addfile(_link(f"lib/python{layout.version}/dist-packages", "site-packages"))
        stream.finish()
    return target.stat().st_size


def _add(tar: tarfile.TarFile, item: Item, layout: Layout) -> None:
    info = tarfile.TarInfo(item.name)
    info.mode, info.mtime = _mode(item), item.modified // 1_000_000_000
    changed = _changed(item, layout)
    if changed is not None:
        info.size = len(changed)
        tar.addfile(info, io.BytesIO(changed))
        return
    with open(item.source, "rb") as file:
        info.size = os.fstat(file.fileno()).st_size
        tar.addfile(info, file)


def _changed(item: Item, layout: Layout) -> bytes | None:
    """The content of files that must not stay as they are; None for all others."""
    binary = item.name == f"bin/python{layout.version}"
    if binary or item.name.startswith("lib/libpython"):
        data = Path(item.source).read_bytes()
        return relocated(data, str(layout.shared)) if layout.shared else data
    if not item.name.startswith("bin/") or item.size > _READ:
        return None
    data = Path(item.source).read_bytes()
    first, _, rest = data.partition(b"\n")
    return _SHEBANG + rest if first.startswith(b"#!") and b"python" in first else None


def _mode(item: Item) -> int:
    return 0o755 if item.mode & stat.S_IXUSR else 0o644


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
    return info
