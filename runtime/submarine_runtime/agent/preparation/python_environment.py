"""Unpack the archives of the job's Python environment.

The environment is put beside the archive. YARN keeps a localized file in a directory of its own,
does not remove it while a container uses the file, and removes the directory with all its content.
So a node unpacks an environment once for all containers and jobs of a user, as YARN itself does,
without YARN's process for each file. Where that directory cannot be written (it is mounted
read-only in a Docker container) the containers of one application share a directory.

An environment that has a base and a delta consists of hard links to the files of the unpacked base,
which other environments use too, and of the files of the delta.
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
import threading
import time
import zipfile
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, BinaryIO, Callable, cast

from submarine_runtime.agent.program import Ending, system_ending
from submarine_runtime.protocol import EndReason, EnvironmentLayers, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.protocol import EnvironmentArchive
    from submarine_runtime.storage import Scratch

_GZIP, _ZIP = b"\x1f\x8b", b"PK"
#: Bytes of the tar file that are written at once.
_READ = 1 << 20
#: Seconds between two checks of a lock, and between two reports.
_CHECK_SECONDS, _REPORT_SECONDS = 0.2, 0.5
_CACHED = "__pycache__/"
_NO_SPACE = os.strerror(errno.ENOSPC)

#: Called with a sentence and the progress, 0 to 1; raises an exception to end the work.
Report = Callable[[str, float], None]


class _ArchiveError(ValueError):
    """The archive is damaged; the text is the reason."""


def place_environment(
    scratch: Scratch, report: Report, wait: Callable[[float], object]
) -> Ending | None:
    """Unpack the archives unless a container of this node has done it, and link the result.

    Parameters
    ----------
    report
        Called at least every second; an exception that it raises ends the unpacking.
    wait
        Function that waits for some seconds, while another container unpacks.

    Returns
    -------
    Ending or None
        The ending of the task if an archive is damaged, or the disk is full.
    """
    archive = os.path.realpath(scratch.path(layout.PYTHON_ENV_ARCHIVE))
    try:
        layers = _described(scratch)
        container = os.path.realpath(scratch.root)
        place = os.path.join(_directory(archive, container), _name(archive))
        only = layers.archive if layers else None
        _unpack_once(archive, place, lambda *target: _extract(archive, only, *target), report, wait)
        if layers is not None and layers.delta is not None:
            place = _place_delta(scratch, layers, layers.delta, place, report, wait)
        os.symlink(place, scratch.path(layout.PYTHON_ENV))
    except _ArchiveError as exc:
        detail = _("The archive of the Python environment could not be unpacked: {error}.")
        return Ending(EndReason.LAUNCH_FAILED, detail.format(error=exc)[:500])
    except OSError as exc:
        return system_ending(exc)
    return None


def _described(scratch: Scratch) -> EnvironmentLayers | None:
    """Return the description of the archives; None for an archive of the user."""
    try:
        with open(scratch.path(layout.PYTHON_ENV_DESCRIPTION), "rb") as file:
            return EnvironmentLayers.from_bytes(file.read())
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, IndexError):
        raise _ArchiveError(_("its description is damaged; submit the job again")) from None


def _place_delta(
    scratch: Scratch,
    layers: EnvironmentLayers,
    delta: EnvironmentArchive,
    base: str,
    report: Report,
    wait: Callable[[float], object],
) -> str:
    """Make the environment that has the files of ``base`` and of the delta; return its place."""
    archive = os.path.realpath(scratch.path(layout.PYTHON_ENV_DELTA))
    beside = _directory(archive, os.path.realpath(scratch.root))
    if os.stat(beside).st_dev != os.stat(base).st_dev:
        # YARN has put the archives on two disks; hard links need one.
        beside = os.path.dirname(base)

    def make(target: str, progress: _Progress) -> None:
        _link_tree(base, target, frozenset(layers.omitted), progress)
        _extract(archive, delta, target, progress)

    place = os.path.join(beside, _name(archive, base))
    _unpack_once(archive, place, make, report, wait)
    return place


def _directory(archive: str, container: str) -> str:
    """Return the directory for the environment.

    Parameters
    ----------
    container
        The container's working directory; its parent belongs to the application.
    """
    for directory in (os.path.dirname(archive), os.path.dirname(container)):
        if os.access(directory, os.W_OK | os.X_OK):
            return directory
    return container


def _name(archive: str, base: str = "") -> str:
    """Return the name of an environment, which is unique for this state of the archive."""
    state = os.stat(archive)
    text = f"{archive}\0{state.st_size}\0{state.st_mtime_ns}" + (f"\0{base}" if base else "")
    return f"{layout.PYTHON_ENV}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _unpack_once(
    archive: str,
    place: str,
    make: Callable[[str, _Progress], None],
    report: Report,
    wait: Callable[[float], object],
) -> None:
    """Make the directory ``place``, unless it exists; one process at a time does so."""
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
            make(partial, _Progress(archive, lock, report))
            os.rename(partial, place)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(lock)


def _link_tree(base: str, target: str, omitted: frozenset[str], progress: _Progress) -> None:
    """Link the files of ``base`` into ``target``; without those that are ``omitted``."""
    for directory, subdirectories, files in os.walk(base):
        below = directory[len(base) + 1 :]
        links = [d for d in subdirectories if os.path.islink(os.path.join(directory, d))]
        names = [os.path.join(below, name) for name in (*files, *links)]
        kept = [name for name in names if not omitted.intersection((name, _source(name)))]
        if kept:
            os.makedirs(os.path.join(target, below), exist_ok=True)
        for relative in kept:
            progress.at(0)
            source, to = os.path.join(base, relative), os.path.join(target, relative)
            try:
                os.link(source, to, follow_symlinks=False)
            except FileNotFoundError:
                if _CACHED not in relative:  # A program of another container replaces byte code.
                    raise
            except OSError as exc:
                if exc.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
                    raise
                shutil.copy2(source, to, follow_symlinks=False)


def _source(code: str) -> str:
    """Return the name of the source of byte code; empty for another file."""
    directory, found, name = code.rpartition(_CACHED)
    return f"{directory}{name.partition('.')[0]}.py" if found else ""


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


def _extract(
    archive: str, expected: EnvironmentArchive | None, target: str, progress: _Progress
) -> None:
    """Extract an archive, and compare it with its description if there is one."""
    check = None if expected is None else _Check(archive)
    try:
        _extract_any(archive, target, progress)
    except _ArchiveError:
        if check is not None and expected is not None:
            check.compare(expected)
        raise
    if check is not None and expected is not None:
        check.compare(expected)


class _Check:
    """Compute the digest of an archive in a thread, while it is extracted."""

    def __init__(self, archive: str) -> None:
        self._archive = archive
        self._digest = hashlib.sha256()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        with suppress(OSError), open(self._archive, "rb") as file:
            while data := file.read(_READ):
                self._digest.update(data)

    def compare(self, expected: EnvironmentArchive) -> None:
        self._thread.join()
        if self._digest.hexdigest() != expected.sha256:
            raise _ArchiveError(
                _(
                    "{name} is damaged, its digest differs from that of its upload; remove it by "
                    "`submarine env rm {digest}` and submit again"
                ).format(name=expected.name, digest=_digest_of(expected.name))
            )


def _digest_of(name: str) -> str:
    """Return the digest in the name of an archive: ``python-env-DIGEST.RANDOM.tar.gz``."""
    return name.partition(".")[0].rpartition("-")[2]


def _extract_any(archive: str, target: str, progress: _Progress) -> None:
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
