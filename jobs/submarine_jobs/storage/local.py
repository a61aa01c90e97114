"""Store job directories on a local file system, for the ``local`` backend and for tests."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from submarine_jobs.errors import NoAccessError, NoRoomError, StorageError
from submarine_jobs.storage.base import PRIVATE_DIRECTORY, PRIVATE_FILE, Entry, Storage, bounded
from submarine_runtime.files import TEMPORARY_PREFIX, replace_file, write_temporary
from submarine_runtime.protocol import JobStore
from submarine_runtime.storage import NO_SPACE
from submarine_runtime.translation import _

_COPY_BYTES = 1 << 20


@contextmanager
def _translated(operation: str, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as exc:
        kind = NoRoomError if exc.errno in NO_SPACE else StorageError
        if isinstance(exc, PermissionError):
            kind = NoAccessError
        raise kind(
            _("Cannot {operation} {path}: {error}.").format(
                operation=operation, path=path, error=exc.strerror or exc
            )
        ) from exc


class LocalStorage(Storage):
    """Directory tree of this machine."""

    prefix = "file://"

    def path_of(self, uri: str) -> str | None:
        """See ``Storage.path_of``; relative paths start at the working directory."""
        parts = urlsplit(uri)
        if not parts.scheme:
            return os.path.abspath(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        return os.path.abspath(unquote(parts.path)) if parts.path.startswith("/") else None

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""
        with _translated("read", path), open(path, "rb") as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def publish(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """See ``Storage.publish``."""
        with _translated("write", path):
            self._make_parent(path)
            replace_file(path, data, mode=mode, sync=True)

    def publish_exclusive(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> bool:
        """See ``Storage.publish_exclusive``; ``link`` fails if the name exists."""
        with _translated("write", path):
            self._make_parent(path)
            temporary = write_temporary(path, data, mode=mode, sync=True)
            try:
                os.link(temporary, path)
            except FileExistsError:
                return self.read(path) == data
            finally:
                os.unlink(temporary)
        return True

    def list_directory(self, path: str) -> list[Entry]:
        """See ``Storage.list_directory``."""
        with _translated("list", path), os.scandir(path) as found:
            entries = bounded(
                Entry(
                    item.name,
                    info.st_size,
                    item.is_dir(follow_symlinks=False),
                    info.st_mtime,
                    _owner(info.st_uid),
                )
                for item in found
                if not item.name.startswith(TEMPORARY_PREFIX)
                for info in [item.stat(follow_symlinks=False)]
            )
        return sorted(entries, key=lambda entry: entry.name)

    def stat(self, path: str) -> Entry | None:
        """See ``Storage.stat``."""
        try:
            with _translated("look at", path):
                info = os.stat(path)
                # The owner of a link, not of its target, decides which file is found.
                owner = os.lstat(path).st_uid
        except FileNotFoundError:
            return None
        except StorageError as error:
            if isinstance(error.__cause__, NotADirectoryError):  # It would be below a file.
                return None
            raise
        name, is_directory = os.path.basename(path), os.path.isdir(path)
        return Entry(name, info.st_size, is_directory, info.st_mtime, _owner(owner))

    def make_directory(self, path: str, *, mode: int = PRIVATE_DIRECTORY) -> None:
        """See ``Storage.make_directory``."""
        with _translated("create", path):
            missing = [
                parent for parent in [Path(path), *Path(path).parents] if not parent.exists()
            ]
            for directory in reversed(missing):
                try:
                    directory.mkdir(mode=mode)
                except FileExistsError:
                    continue

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """See ``Storage.delete``."""
        try:
            with _translated("delete", path):
                if not os.path.isdir(path) or os.path.islink(path):
                    os.unlink(path)
                elif recursive:
                    shutil.rmtree(path)
                else:
                    os.rmdir(path)
        except FileNotFoundError:
            return

    def upload(
        self,
        source: Path,
        path: str,
        progress: Callable[[int], None] | None = None,
        *,
        mode: int = PRIVATE_FILE,
    ) -> None:
        """See ``Storage.upload``."""
        with _translated("write", path):
            self._make_parent(path)
            replace_file(path, lambda file: _copy(source, file), mode=mode)

    def download(self, path: str, target: Path) -> None:
        """See ``Storage.download``."""
        with _translated("read", path):
            shutil.copyfile(path, target)

    def owner_name(self, user: str) -> str:
        """See ``Storage.owner_name``; empty for the account of this process."""
        return ""

    def job_store(self, path: str) -> JobStore:
        """See ``Storage.job_store``."""
        return JobStore(kind="local", path=path)

    def _make_parent(self, path: str) -> None:
        self.make_directory(os.path.dirname(path))


def _copy(source: Path, target: BinaryIO) -> None:
    with source.open("rb") as stream:
        shutil.copyfileobj(stream, target, _COPY_BYTES)


def _owner(uid: int) -> str:
    """Return the name of another account; empty for the account of this process."""
    if uid == os.geteuid():
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
