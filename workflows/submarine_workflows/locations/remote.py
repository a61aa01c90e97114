"""Remote locations of notebooks: HDFS and the file systems of fsspec.

HDFS is accessed through the project's storage, without a JVM. Files are replaced atomically if the
file system supports it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from submarine_jobs import storage
from submarine_jobs.backends.yarn import cluster
from submarine_jobs.errors import NAME_CLUSTER, NoClusterError, StorageError, UsageError
from submarine_jobs.extras import require_extra
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.locations.location import MAX_BYTES, Location, check_size, without_password

if TYPE_CHECKING:
    from submarine_jobs.model import Profile
    from submarine_jobs.storage import Storage


class HdfsLocation(Location):
    """A file in HDFS, ``hdfs://host:port/path``; ``hdfs:///path`` is in the profile's HDFS.

    All spellings of the profile's HDFS (its nameservice, the RPC and HTTP addresses of its
    NameNodes) denote one file system. A user in the URL is ignored: requests use the profile's
    user.

    Parameters
    ----------
    profile
        Returns the profile for HDFS and its user; called on demand.
    """

    def __init__(self, url: str, profile: Callable[[], Profile]) -> None:
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        if parts.path in ("", "/") or parts.query or parts.fragment or ":" in user:
            raise UsageError(
                _("{url} is not a file in HDFS.").format(url=printable(without_password(url), 200)),
                _("Write hdfs:///user/me/x.ipynb, or hdfs://namenode:8020/user/me/x.ipynb."),
            )
        self.url = url
        self._profile = profile

    @functools.cached_property
    def _resolved(self) -> tuple[Storage, str]:
        """The file system, and the path in it."""
        profile = self._profile()
        conf = cluster.HadoopConf(profile.hadoop_conf_dir) if profile.hadoop_conf_dir else None
        if conf is not None:
            own = cluster.default_file_system(profile, conf, cluster.Identity(profile, conf))
            path = own.path_of(self.url)
            if path is not None:
                return own, path
        host = urlsplit(self.url).netloc.rpartition("@")[2]
        if not host:
            raise NoClusterError(
                _("{url} names no NameNode, and no cluster is configured.").format(
                    url=printable(self.url, 200)
                ),
                _(
                    "Write hdfs://namenode:8020/path. {name_cluster}, or choose one with --profile."
                ).format(name_cluster=_(NAME_CLUSTER)),
            )
        conf_dir = conf.directory if conf else None
        other = storage.hdfs_storage(
            f"hdfs://{host}", conf_dir=conf_dir, user=profile.user, timeout=profile.timeout
        )
        return other, urlsplit(self.url).path

    @property
    def _storage(self) -> Storage:
        return self._resolved[0]

    @property
    def _path(self) -> str:
        return self._resolved[1]

    @property
    def identity(self) -> str:
        """URL that is equal for all spellings of one file."""
        return self._storage.url(self._path)

    def read(self) -> bytes:
        """See ``Location.read``."""
        try:
            return check_size(self._storage.read(self._path, 0, MAX_BYTES + 1), self.url)
        except FileNotFoundError:
            raise UsageError(
                _("There is no file {url}.").format(url=printable(self.url, 200))
            ) from None

    def exists(self) -> bool:
        """See ``Location.exists``."""
        return self._storage.stat(self._path) is not None

    def write(self, data: bytes) -> None:
        """See ``Location.write``."""
        try:
            self._storage.publish(self._path, data)
        except (FileNotFoundError, FileExistsError) as error:
            raise StorageError(
                _("{url} cannot be written: {error}.").format(
                    url=printable(self.url, 200), error=printable(str(error), 200)
                )
            ) from None


class FsspecLocation(Location):
    """A file in any other file system. Object stores replace files atomically."""

    def __init__(self, url: str) -> None:
        require_extra("workflows")
        # cost: fsspec, which HDFS and local files do not need.
        import fsspec
        from fsspec.registry import known_implementations, registry

        self._target = url
        self.url = without_password(url)
        scheme = url.partition("://")[0].partition("::")[0]
        if scheme not in registry and scheme not in known_implementations:
            raise UsageError(
                _("{url}: {scheme}:// is not supported.").format(
                    url=printable(self.url, 200), scheme=scheme
                ),
                _("Give a path, hdfs:// or a URL of fsspec (s3://, gs://, webhdfs://, ...)."),
            )
        try:
            self._filesystem, self._path = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise UsageError(
                _("{scheme}:// needs another package: {error}.").format(scheme=scheme, error=error)
            ) from None
        except Exception as error:
            raise self._failed("opened", error) from None

    def read(self) -> bytes:
        """See ``Location.read``."""
        try:
            data = self._filesystem.cat_file(self._path, 0, MAX_BYTES + 1)
        except FileNotFoundError:
            raise UsageError(
                _("There is no file {url}.").format(url=printable(self.url, 200))
            ) from None
        except Exception as error:
            raise self._failed("read", error) from None
        return check_size(bytes(data), self.url)

    def exists(self) -> bool:
        """See ``Location.exists``. fsspec's own method reports every error as a missing file."""
        try:
            self._filesystem.invalidate_cache()
            self._filesystem.info(self._path)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._failed("checked", error) from None
        return True

    def write(self, data: bytes) -> None:
        """See ``Location.write``."""
        try:
            self._filesystem.pipe_file(self._path, data)
        except Exception as error:
            raise self._failed("written", error) from None

    def _failed(self, what: str, error: Exception) -> StorageError:
        # The message of a library may contain the URL with a password.
        message = printable(" ".join(str(error).replace(self._target, self.url).split()), 300)
        kind = type(error).__name__
        return StorageError(
            _("{url} cannot be {what}: {kind}: {message}.").format(
                url=printable(self.url, 200), what=what, kind=kind, message=message
            )
        )
