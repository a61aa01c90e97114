"""Pack an environment into one ``.tar.gz``, compressed on all cores.

The content digest covers names, modes and bytes, not times, so machines with equal environments
share an archive.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

from submarine_jobs.environments.inventory import EnvironmentFile, InterpreterLayout
from submarine_runtime.translation import _

#: Lowest level: twice as fast as the default, with 10 % larger output.
LEVEL = 1
_BLOCK = 4 << 20
_READ = 1 << 20
#: Runs the interpreter in the directory of the script; valid for both shell and Python.
_SHEBANG = b"#!/bin/sh\n'''exec' \"$(dirname \"$0\")/python3\" \"$0\" \"$@\"\n' '''\n"
#: Called with the bytes read so far and the total.
ByteProgress = Callable[[int, int], None]
ELF = b"\x7fELF"
ORIGIN = b"$ORIGIN/../lib"


class ParallelGzip(io.RawIOBase):
    """A file object that compresses data into ``target``, with one gzip member for each block.

    Concatenated members are a valid gzip file (RFC 1952, section 2.2), which ``gzip -d``, Python
    and Java can read. zlib releases the interpreter lock, so threads compress in parallel.

    Attributes
    ----------
    digest
        SHA-256 of the compressed data that was written so far.
    """

    def __init__(self, target: BinaryIO, threads: int) -> None:
        self._target = target
        self._position = 0
        self.digest = hashlib.sha256()
        self._pool = ThreadPoolExecutor(threads, "submarine-gzip")
        self._waiting: deque[Future[bytes]] = deque()
        self._most = threads + 2
        self._buffer = bytearray()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        """Write ``data``; block while the compression queue is full."""
        self._position += len(data)
        self._buffer += data
        while len(self._buffer) >= _BLOCK:
            self._submit(bytes(self._buffer[:_BLOCK]))
            del self._buffer[:_BLOCK]
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes that were given to ``write``."""
        return self._position

    def _submit(self, block: bytes) -> None:
        self._waiting.append(self._pool.submit(_member, block))
        while len(self._waiting) > self._most:
            self._emit()

    def _emit(self) -> None:
        member = self._waiting.popleft().result()
        self.digest.update(member)
        self._target.write(member)

    def finish(self) -> None:
        """Compress the remaining data and stop the threads."""
        if self._buffer:
            self._submit(bytes(self._buffer))
            self._buffer.clear()
        while self._waiting:
            self._emit()
        self._pool.shutdown()


def _member(block: bytes) -> bytes:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)
    return compressor.compress(block) + compressor.flush()


class PackedArchive(NamedTuple):
    """Size in bytes and SHA-256 of an archive."""

    size: int
    sha256: str


def file_digests(
    items: Collection[EnvironmentFile],
    known: Mapping[str, str] = {},
    progress: ByteProgress | None = None,
) -> dict[str, str]:
    """Return name -> SHA-256 of the files that count.

    Parameters
    ----------
    known
        Name -> digest of the files that need not be read.
    progress
        Called with the bytes read so far and the total after each file.
    """
    unread = [item for item in items if item.counts and item.name not in known]
    found = {item.name: known[item.name] for item in items if item.counts and item.name in known}
    total, done = sum(item.size for item in unread), 0
    # hashlib releases the interpreter lock, so threads read and compute in parallel.
    with ThreadPoolExecutor(_threads(), "submarine-digest") as pool:
        for item, digest in zip(unread, pool.map(_file_digest, unread), strict=True):
            found[item.name] = digest
            done += item.size
            if progress is not None:
                progress(done, total)
    return found


def _file_digest(item: EnvironmentFile) -> str:
    with open(item.source, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(
    items: Collection[EnvironmentFile],
    layout: InterpreterLayout,
    digests: Mapping[str, str] | None = None,
) -> str:
    """Return the SHA-256 of names, modes and bytes of the archive, in order of name.

    Parameters
    ----------
    digests
        Name -> SHA-256 of each file that counts; None: the files are read.
    """
    digests = file_digests(items) if digests is None else digests
    digest = hashlib.sha256(b"submarine environment 2\n")
    for item in sorted(items, key=lambda item: item.name):
        if item.counts:
            digest.update(f"{item.name}\0{archive_mode(item):o}\0".encode())
            digest.update(bytes.fromhex(digests[item.name]))
    digest.update(layout.version.encode())
    return digest.hexdigest()


def write_archive(
    items: Collection[EnvironmentFile],
    layout: InterpreterLayout,
    target: Path,
    progress: ByteProgress | None = None,
    *,
    links: bool = True,
) -> PackedArchive:
    """Write the archive and return its size and digest.

    Parameters
    ----------
    progress
        Called with the bytes read so far and the total after each file.
    links
        Whether the archive has the links of an interpreter; those of a delta are in its base.

    Raises
    ------
    OSError
        If a file cannot be read, or the disk is full.
    """
    total = sum(item.size for item in items) or 1
    done = 0
    with target.open("wb") as file:
        stream = ParallelGzip(file, _threads())
        # Not the mode w|, which copies each file in blocks of 10 KiB.
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.copybufsize = _READ  # type: ignore[attr-defined]
            for item in sorted(items, key=lambda item: item.name):
                _add(tar, item, layout)
                done += item.size
                if progress is not None:
                    progress(done, total)
            if links:
                for name in ("python3", "python"):
                    tar.addfile(_link(f"bin/{name}", f"python{layout.version}"))
                # Debian's Python searches this directory instead of site-packages.
                tar.addfile(_link(f"lib/python{layout.version}/dist-packages", "site-packages"))
        stream.finish()
    return PackedArchive(target.stat().st_size, stream.digest.hexdigest())


def _threads() -> int:
    return max(1, min(8, os.cpu_count() or 1))


def _add(tar: tarfile.TarFile, item: EnvironmentFile, layout: InterpreterLayout) -> None:
    info = tarfile.TarInfo(item.name)
    info.mode, info.mtime = archive_mode(item), item.modified // 1_000_000_000
    changed = _changed(item, layout)
    if changed is not None:
        info.size = len(changed)
        tar.addfile(info, io.BytesIO(changed))
        return
    with open(item.source, "rb") as file:
        info.size = os.fstat(file.fileno()).st_size
        tar.addfile(info, file)


def _changed(item: EnvironmentFile, layout: InterpreterLayout) -> bytes | None:
    """Return the relocated content of a file; None if it is unchanged."""
    binary = item.name == f"bin/python{layout.version}"
    if binary or item.name.startswith("lib/libpython"):
        data = Path(item.source).read_bytes()
        return relocated(data, str(layout.shared)) if layout.shared else data
    if not item.name.startswith("bin/") or item.size > _READ:
        return None
    data = Path(item.source).read_bytes()
    first, _, rest = data.partition(b"\n")
    return _SHEBANG + rest if first.startswith(b"#!") and b"python" in first else None


def archive_mode(item: EnvironmentFile) -> int:
    """Return the mode of a file in the archive."""
    return 0o755 if item.mode & stat.S_IXUSR else 0o644


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
    return info


def relocated(data: bytes, library_directory: str) -> bytes:
    """Replace the run path ``library_directory`` of an executable or library by a relative one.

    Returns
    -------
    bytes
        The same number of bytes; ``data`` if it is not an ELF file or has no such path.

    Raises
    ------
    ValueError
        If the path is too short to be replaced.
    """
    old = library_directory.rstrip("/").encode()
    entry = b"\0" + old + b"\0"
    if not data.startswith(ELF) or entry not in data:
        return data
    if len(old) < len(ORIGIN):
        raise ValueError(
            _("{directory} is too short a path to be made relative").format(
                directory=library_directory
            )
        )
    new = b"\0" + ORIGIN.ljust(len(old), b"\0") + b"\0"
    return data.replace(entry, new)
