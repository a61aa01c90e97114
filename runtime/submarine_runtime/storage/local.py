"""The job directory on a file system of this machine, without retries."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from shutil import rmtree
from stat import S_IMODE, S_ISDIR
from typing import BinaryIO, Callable, Iterable, Iterator

from submarine_runtime.files import remove_file, write_temporary
from submarine_runtime.storage.store import (
    Appender,
    Entry,
    NotFoundError,
    Store,
    StoreError,
)
from submarine_runtime.translation import _

COPY_BYTES = 1 << 18
#: Maximum number of bytes of a file that is read whole.
MAX_READ_BYTES = 64 << 20
#: Errors of a full disk or an exceeded quota.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_TRANSIENT = frozenset({errno.EAGAIN, errno.EINTR, errno.ESTALE, errno.EIO, errno.ETIMEDOUT})


class LocalStore(Store):
    """A directory; exclusive publish is ``link(2)``, everything else is ``rename(2)``."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = root

    def _full(self, path: str) -> str:
        return os.path.join(self._root, path)

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        try:
            with open(self._full(path), "rb") as file:
                return file.read(MAX_READ_BYTES)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _error("read", path, exc) from exc

    def exists(self, path: str) -> bool:
        """See ``Store.exists``."""
        return os.path.lexists(self._full(path))

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """See ``Store.publish_exclusive``."""
        temporary = self._write(path, lambda file: file.write(data))
        try:
            self.gate()
            os.link(temporary, self._full(path))
        except FileExistsError:
            return self.read(path) == data
        except OSError as exc:
            raise _error("publish", path, exc) from exc
        finally:
            remove_file(temporary)
        self._sync_directory(path)
        self.files += 1
        return True

    def publish(self, path: str, data: bytes) -> None:
        """See ``Store.publish``."""
        self._rename(self._write(path, lambda file: file.write(data)), path)

    def upload(self, path: str, source: str, offset: int = 0, length: int | None = None) -> int:
        """See ``Store.upload``."""
        sent = 0

        def copy(target: BinaryIO) -> int:
            nonlocal sent
            with open(source, "rb") as file:
                file.seek(offset)
                while length is None or sent < length:
                    wanted = COPY_BYTES if length is None else min(COPY_BYTES, length - sent)
                    block = file.read(wanted)
                    if not block:
                        break
                    target.write(block)
                    sent += len(block)
            return sent

        self._rename(self._write(path, copy), path)
        return sent

    def put(self, path: str, blocks: Iterable[bytes], length: int) -> None:
        """See ``Store.put``."""

        def fill(file: BinaryIO) -> int:
            return sum(file.write(block) for block in blocks)

        self._rename(self._write(path, fill), path)

    def appender(self, path: str) -> Appender:
        """See ``Store.appender``."""
        return _LocalAppender(self._write(path, lambda file: 0), self._full(path), path)

    def stat(self, path: str) -> Entry | None:
        """See ``Store.stat``."""
        try:
            return _entry(os.path.basename(path.rstrip("/")), os.stat(self._full(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise _error(_("look at"), path, exc) from exc

    def entries(self, path: str) -> list[Entry]:
        """See ``Store.entries``."""
        found = []
        try:
            with os.scandir(self._full(path)) as listing:
                for item in listing:
                    with suppress(FileNotFoundError):  # Removed, or a dangling link.
                        found.append(_entry(item.name, item.stat()))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as exc:
            raise _error("list", path, exc) from exc
        return found

    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """See ``Store.stream``."""
        try:
            with open(self._full(path), "rb") as file:
                file.seek(offset)
                while length is None or length > 0:
                    block = file.read(COPY_BYTES if length is None else min(COPY_BYTES, length))
                    if not block:
                        return
                    length = None if length is None else length - len(block)
                    yield block
        except FileNotFoundError as exc:
            raise NotFoundError(_("there is no file {path}").format(path=path)) from exc
        except OSError as exc:
            raise _error("read", path, exc) from exc

    def move(self, path: str, to: str) -> None:
        """See ``Store.move``."""
        self.gate()
        try:
            os.rename(self._full(path), self._full(to))
        except FileNotFoundError as exc:
            raise NotFoundError(_("there is no file {path}").format(path=path)) from exc
        except OSError as exc:
            raise _error("rename", path, exc) from exc

    def delete(self, path: str, recursive: bool = False) -> None:
        """See ``Store.delete``."""
        self.gate()
        full = self._full(path)
        try:
            if not os.path.isdir(full) or os.path.islink(full):
                os.unlink(full)
            elif recursive:
                rmtree(full)
            else:
                os.rmdir(full)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise _error("delete", path, exc) from exc

    def make_directory(self, path: str) -> None:
        """See ``Store.make_directory``."""
        self.gate()
        try:
            make_directories(self._full(path), self.mode_of(path) or 0o700)
        except OSError as exc:
            raise _error("make", path, exc) from exc

    def _write(self, path: str, fill: Callable[[BinaryIO], int]) -> str:
        self.gate()
        full = self._full(path)
        try:
            if not os.path.isdir(os.path.dirname(full)):
                if not os.path.isabs(path) and not os.path.isdir(self._root):
                    raise StoreError(
                        _("the job directory {root} is not there").format(root=self._root)
                    )
                make_directories(os.path.dirname(full), self.mode_of(path) or 0o700)
            mode = self.mode_of(path) & 0o666 or 0o600
            return write_temporary(full, fill, mode=mode, sync=True)
        except OSError as exc:
            raise _error("write", path, exc) from exc

    def _rename(self, temporary: str, path: str) -> None:
        try:
            self.gate()
            os.rename(temporary, self._full(path))
        except OSError as exc:
            remove_file(temporary)
            raise _error("publish", path, exc) from exc
        except StoreError:
            remove_file(temporary)
            raise
        self._sync_directory(path)
        self.files += 1

    def _sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(os.path.dirname(self._full(path)), os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(descriptor)
        except OSError:
            pass  # Some file systems cannot sync a directory; the rename is complete anyway.
        finally:
            os.close(descriptor)


class _LocalAppender(Appender):
    """An open file; the kernel keeps written data when the process is killed."""

    def __init__(self, temporary: str, full: str, path: str) -> None:
        self._path = path
        try:
            os.rename(temporary, full)
            self._file = os.open(full, os.O_WRONLY | os.O_APPEND)
        except OSError as exc:
            remove_file(temporary)
            raise _error("write", path, exc) from exc

    def append(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as exc:
            raise _error("write", self._path, exc) from exc

    def close(self) -> None:
        try:
            os.fsync(self._file)
        except OSError as exc:
            raise _error("write", self._path, exc) from exc
        finally:
            self.abort()

    def abort(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def make_directories(path: str, mode: int = 0o700) -> None:
    """Create a directory and its parents, all with ``mode``, unlike ``os.makedirs``."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(directory, mode)
            if mode & 0o077:
                os.chmod(directory, mode)  # The umask does not count.


def _entry(name: str, info: os.stat_result) -> Entry:
    mode = S_IMODE(info.st_mode)
    return Entry(name, info.st_size, S_ISDIR(info.st_mode), info.st_mtime, mode=mode)


def _error(action: str, path: str, exc: OSError) -> StoreError:
    reason = os.strerror(exc.errno) if exc.errno else str(exc)
    return StoreError(
        _("cannot {action} {path}: {reason}").format(action=action, path=path, reason=reason),
        exc.errno in _TRANSIENT,
        full=exc.errno in NO_SPACE,
    )
