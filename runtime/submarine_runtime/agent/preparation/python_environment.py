"""Unpack the archive of the job's Python environment.

The environment is put beside the archive. YARN keeps a localized file in a directory of its own,
does not remove it while a container uses the file, and removes the directory with all its content.
So a node unpacks an environment once for all containers and jobs of a user, as YARN itself does,
without YARN's process for each file. Where that directory cannot be written (it is mounted
read-only in a Docker container) the containers of one application share a directory.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
import zipfile
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, BinaryIO, Callable, cast

from submarine_runtime.agent.program import Ending, system_ending
from submarine_runtime.protocol import EndReason, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.storage import Scratch

_GZIP, _ZIP = b"\x1f\x8b", b"PK"
#: Bytes of the tar file that are written at once.
_READ = 1 << 20
#: Seconds between two checks of a lock, and between two reports.
_CHECK_SECONDS, _REPORT_SECONDS = 0.2, 0.5
_NO_SPACE = os.strerror(errno.ENOSPC)

#: Called with a sentence and the progress, 0 to 1; raises an exception to end the work.
Report = Callable[[str, float], None]


class _ArchiveError(ValueError):
    """The archive is damaged; the text is the reason."""


def place_environment(
    scratch: Scratch, report: Report, wait: Callable[[float], object]
) -> Ending | None:
    """Unpack the archive unless a container of this node has done it, and link it.

    Parameters
    ----------
    report
        Called at least every second; an exception that it raises ends the unpacking.
    wait
        Function that waits for some seconds, while another container unpacks.

    Returns
    -------
    Ending or None
        The ending of the task if the archive is damaged, or the disk is full.
    """
    archive = os.path.realpath(scratch.path(layout.PYTHON_ENV_ARCHIVE))
    try:
        shared = _shared_place(archive, scratch.root)
        _unpack_once(archive, shared, report, wait)
        os.symlink(shared, scratch.path(layout.PYTHON_ENV))
    except _ArchiveError as exc:
        detail = _("The archive of the Python environment could not be unpacked: {error}.")
        return Ending(EndReason.LAUNCH_FAILED, detail.format(error=exc)[:500])
    except OSError as exc:
        return system_ending(exc)
    return None


def _shared_place(archive: str, container: str) -> str:
    """Return the directory for the environment; its name is unique for this state of the archive.

    Parameters
    ----------
    container
        The container's working directory; its parent belongs to the application.
    """
    state = os.stat(archive)
    text = f"{archive}\0{state.st_size}\0{state.st_mtime_ns}"
    name = f"{layout.PYTHON_ENV}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    container = os.path.realpath(container)
    for directory in (os.path.dirname(archive), os.path.dirname(container)):
        if os.access(directory, os.W_OK | os.X_OK):
            return os.path.join(directory, name)
    return os.path.join(container, name)


def _unpack_once(archive: str, place: str, report: Report, wait: Callable[[float], object]) -> None:
    """Unpack into ``place``, unless it exists; one process at a time does so."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(f"{place}.lock", flags, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                # The other process writes its progress into the file.
                share = 0.0
                with suppress(ValueError):  # Nothing is written yet.
                    share = float(os.pread(lock, 16, 0))
                report(_sentence(archive, share), share)
                wait(_CHECK_SECONDS)
        if os.path.isdir(place):
            return
        partial = f"{place}.partial"
        shutil.rmtree(partial, ignore_errors=True)  # Of a container that was killed.
        os.mkdir(partial, 0o700)
        try:
            _extract(archive, partial, _Progress(archive, lock, report))
            os.rename(partial, place)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(lock)


def _sentence(archive: str, share: float) -> str:
    size = os.stat(archive).st_size / 2**20
    return _("Unpacking the Python environment: {percent:.0f} % of {size:.0f} MiB.").format(
        percent=share * 100, size=size
    )


class _Progress:
    """Report how much of the archive has been read, here and in the lock's file."""

    def __init__(self, archive: str, lock: int, report: Report) -> None:
        self._archive = archive
        self._lock = lock
        self._report = report
        self._total = os.stat(archive).st_size or 1
        self._next = 0.0

    def at(self, done: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _REPORT_SECONDS
        share = round(min(1.0, done / self._total), 3)
        os.pwrite(self._lock, f"{share:<16}".encode(), 0)
        self._report(_sentence(self._archive, share), share)


def _extract(archive: str, target: str, progress: _Progress) -> None:
    with open(archive, "rb") as file:
        first = file.read(2)
        file.seek(0)
        if first == _ZIP:
            _extract_zip(file, target, progress)
        elif first == _GZIP:
            # Python's zlib takes two thirds of the time of the program gzip, beside tar.
            with gzip.GzipFile(fileobj=file) as content:
                _extract_tar(cast("IO[bytes]", content), target, lambda: progress.at(file.tell()))
        else:
            _extract_tar(file, target, lambda: progress.at(file.tell()))


def _extract_tar(content: IO[bytes], target: str, report: Callable[[], None]) -> None:
    """Write the content to the program tar, which is twice as fast as Python's module."""
    command = ["tar", "-x", "-o", "-f", "-", "-C", target]
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "LC_ALL": "C"},
            )
        except FileNotFoundError as exc:
            raise _ArchiveError(_("the container has no program tar")) from exc
        try:
            with suppress(BrokenPipeError), process.stdin as pipe:  # type: ignore[union-attr]
                while data := content.read(_READ):
                    report()
                    pipe.write(data)
            code = process.wait()
        except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
            raise _ArchiveError(str(exc)) from exc
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if code:
            errors.seek(0)
            text = errors.read(_READ).decode(errors="replace").strip() or f"tar: {code}"
            if _NO_SPACE in text:
                raise OSError(errno.ENOSPC, _NO_SPACE, target)
            raise _ArchiveError(text.splitlines()[0][:300])


def _extract_zip(file: BinaryIO, target: str, progress: _Progress) -> None:
    """Extract with modes and links, which are made last, so that no file is written through one."""
    links = []
    try:
        with zipfile.ZipFile(file) as archive:
            done = 0
            for member in archive.infolist():
                mode = member.external_attr >> 16
                path = archive.extract(member, target)
                if stat.S_ISLNK(mode):
                    links.append(path)
                elif mode & stat.S_IXUSR:
                    os.chmod(path, 0o700)
                done += member.compress_size
                progress.at(done)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as exc:
        raise _ArchiveError(str(exc)) from exc
    for path in links:
        with open(path, encoding="utf-8") as link:
            to = link.read(4096)
        os.unlink(path)
        os.symlink(to, path)
