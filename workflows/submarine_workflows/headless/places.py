"""Where notebooks are read from and written to: a path, ``hdfs://``, any URL that fsspec knows.

HDFS goes through the project's own storage, which needs no JVM; every whole file that is written
takes the place of the one before at once, or not at all, where the file system can do that.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import stat
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from submarine_jobs.display.untrusted import printable
from submarine_jobs.errors import NoClusterError, StorageError, UsageError

#: A notebook larger than this is read by no front end either.
MAX_BYTES = 256 * 1024 * 1024
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?:::[^:]+)*://")


class Place(ABC):
    """One file somewhere.

    Attributes
    ----------
    url
        Where, as it was written, fit to be shown: without a password.
    local
        The path on this machine, or None.
    """

    url: str
    local: Path | None = None

    @abstractmethod
    def read(self) -> bytes:
        """All of it; UsageError where there is none, StorageError where nobody answers."""

    def exists(self) -> bool:
        """Whether a file or folder is there; StorageError where nobody answers.

        A place that cannot say it otherwise is read.
        """
        try:
            self.read()
        except UsageError:
            return False
        return True

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Put ``data`` in the place of what was there; StorageError where that fails."""


def is_url(text: str) -> bool:
    """Whether ``text`` names something by a scheme, as a path never does."""
    return _SCHEME.match(text) is not None


def place_of(text: str, settings: dict[str, Any] | None = None) -> Place:
    """The place that ``text`` names.

    Parameters
    ----------
    settings
        What ``load_config`` takes: the profile whose HDFS is meant.

    Raises
    ------
    UsageError
        If nobody knows such a URL, or it needs a package that is not installed.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return LocalPlace(Path(text).expanduser())
    if scheme[1].lower() == "file":
        path = urlsplit(text).path
        if not path.startswith("/"):
            raise UsageError(f"{printable(text, 200)} names no file.", "Write file:///dir/x.ipynb.")
        return LocalPlace(Path(path))
    if scheme[1].lower() == "hdfs":
        return HdfsPlace(text, settings or {})
    return FsspecPlace(text)


class LocalPlace(Place):
    """A file of this machine."""

    def __init__(self, path: Path) -> None:
        self.local = path
        self.url = str(path)

    def read(self) -> bytes:
        """See ``Place.read``."""
        assert self.local is not None
        try:
            with self.local.open("rb") as stream:
                return _bounded(stream.read(MAX_BYTES + 1), self.url)
        except OSError as error:
            raise UsageError(
                f"{printable(self.url, 200)} cannot be read: {error.strerror or error}.",
                _beside(self.local),
            ) from None

    def exists(self) -> bool:
        """See ``Place.exists``."""
        assert self.local is not None
        try:
            self.local.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{printable(self.url, 200)} cannot be looked for: {error}."
            ) from None
        return True

    def write(self, data: bytes) -> None:
        """See ``Place.write``: by rename, and safe on the disk before that."""
        assert self.local is not None
        try:
            write_by_rename(self.local, data)
        except FileNotFoundError:
            raise UsageError(
                f"There is no folder {printable(str(self.local.parent), 200)} to write "
                f"{printable(self.local.name, 100)} to."
            ) from None
        except OSError as error:
            raise StorageError(
                f"{printable(self.url, 200)} cannot be written: {error.strerror or error}."
            ) from None


def write_by_rename(path: Path, data: bytes) -> None:
    """Replace the file at ``path`` in one step; what a link points to, not the link."""
    target = Path(os.path.realpath(path))
    try:
        old = target.stat().st_mode
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old):
        # A device or a pipe: there is nothing to replace.
        with target.open("wb") as stream:
            stream.write(data)
        return
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if old is not None:
            os.chmod(temporary, stat.S_IMODE(old))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class HdfsPlace(Place):
    """A file of HDFS, ``hdfs://host:port/path``; ``hdfs:///path`` is of the profile's own."""

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        parts = urlsplit(url)
        if parts.path in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise UsageError(
                f"{printable(url, 200)} names no file of HDFS.",
                "Write hdfs:///user/me/x.ipynb, or hdfs://namenode:8020/user/me/x.ipynb.",
            )
        self.url = url
        self._path = parts.path
        self._filesystem = f"hdfs://{parts.netloc}" if parts.netloc else ""
        self._settings = settings

    @functools.cached_property
    def _storage(self) -> Any:
        from submarine_jobs.backends.yarn.hadoopconf import HadoopConf
        from submarine_jobs.config import load_config
        from submarine_jobs.storage.hdfs import HdfsStorage

        profile = load_config(self._settings).profile
        conf = HadoopConf(profile.hadoop_conf_dir) if profile.hadoop_conf_dir else None
        filesystem = self._filesystem or (conf.default_fs if conf else "")
        if not filesystem:
            raise NoClusterError(
                f"{printable(self.url, 200)} names no NameNode, and no cluster is configured.",
                "Write hdfs://namenode:8020/path, or choose a cluster with --profile.",
            )
        own = conf is not None and filesystem == conf.default_fs
        return HdfsStorage(
            filesystem,
            conf_dir=conf.directory if conf else None,
            webhdfs=conf.webhdfs if conf and own else (),
            user=profile.user,
            timeout=profile.timeout,
        )

    def read(self) -> bytes:
        """See ``Place.read``."""
        try:
            return _bounded(self._storage.read(self._path, 0, MAX_BYTES + 1), self.url)
        except FileNotFoundError:
            raise UsageError(f"There is no file {printable(self.url, 200)}.") from None

    def exists(self) -> bool:
        """See ``Place.exists``."""
        return self._storage.stat(self._path) is not None

    def write(self, data: bytes) -> None:
        """See ``Place.write``."""
        try:
            self._storage.publish(self._path, data)
        except (FileNotFoundError, FileExistsError) as error:
            raise StorageError(
                f"{printable(self.url, 200)} cannot be written: {printable(str(error), 200)}."
            ) from None


class FsspecPlace(Place):
    """A file of any other file system; object stores replace a file at once by themselves."""

    def __init__(self, url: str) -> None:
        import fsspec
        from fsspec.registry import known_implementations, registry

        self._target = url
        self.url = without_password(url)
        scheme = url.partition("://")[0].partition("::")[0]
        if scheme not in registry and scheme not in known_implementations:
            raise UsageError(
                f"{printable(self.url, 200)}: nobody knows {scheme}://.",
                "Give a path, hdfs:// or a URL that fsspec knows (s3://, gs://, webhdfs://, ...).",
            )
        try:
            self._filesystem, self._path = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise UsageError(f"{scheme}:// needs another package: {error}.") from None
        except Exception as error:
            raise self._failed("opened", error) from None

    def read(self) -> bytes:
        """See ``Place.read``."""
        try:
            data = self._filesystem.cat_file(self._path, 0, MAX_BYTES + 1)
        except FileNotFoundError:
            raise UsageError(f"There is no file {printable(self.url, 200)}.") from None
        except Exception as error:
            raise self._failed("read", error) from None
        return _bounded(bytes(data), self.url)

    def exists(self) -> bool:
        """See ``Place.exists``: not by fsspec's own, which takes every trouble for a no."""
        try:
            self._filesystem.invalidate_cache()
            self._filesystem.info(self._path)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._failed("looked for", error) from None
        return True

    def write(self, data: bytes) -> None:
        """See ``Place.write``."""
        try:
            self._filesystem.pipe_file(self._path, data)
        except Exception as error:
            raise self._failed("written", error) from None

    def _failed(self, what: str, error: Exception) -> StorageError:
        # What a library says may hold the URL, and that a password.
        said = printable(" ".join(str(error).replace(self._target, self.url).split()), 300)
        kind = type(error).__name__
        return StorageError(f"{printable(self.url, 200)} cannot be {what}: {kind}: {said}.")


def without_password(url: str) -> str:
    """``url`` without what stands before ``@``: it is shown, saved and logged."""
    return re.sub(r"://[^/@\s]*@", "://", url)


def _bounded(data: bytes, url: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{printable(url, 200)} is larger than {MAX_BYTES >> 20} MiB.",
            "Clear its outputs and save it.",
        )
    return data


def _beside(path: Path) -> str:
    try:
        names = sorted(item.name for item in path.parent.glob(f"*{path.suffix}"))[:5]
    except OSError:
        names = []
    return f"There are {', '.join(map(printable, names))} beside it." if names else ""
