"""Find the location that a path or URL denotes: a local file, ``hdfs://``, URLs of fsspec."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from submarine_jobs import config, storage
from submarine_jobs.backends.yarn import cluster
from submarine_jobs.errors import UsageError
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.locations.local_file import LocalLocation
from submarine_workflows.locations.location import Location
from submarine_workflows.locations.remote import FsspecLocation, HdfsLocation

if TYPE_CHECKING:
    from submarine_jobs.model import Profile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?:::[^:]+)*://")


def is_url(text: str) -> bool:
    """Return whether ``text`` begins with a URL scheme."""
    return _SCHEME.match(text) is not None


def current_profile() -> Profile:
    """Return the profile of configuration and environment, without command options."""
    return config.load_config().profile


def _is_own_hdfs(text: str, profile: Callable[[], Profile]) -> bool:
    """Return whether a ``webhdfs://`` URL is in the profile's HDFS; fsspec would need its user."""
    if not text.lower().startswith(("webhdfs://", "swebhdfs://")):
        return False
    directory = profile().hadoop_conf_dir
    if directory is None:
        return False
    conf = cluster.HadoopConf(directory)
    return storage.hdfs_storage(conf.default_fs, addresses=conf.addresses).path_of(text) is not None


def find_location(text: str, profile: Callable[[], Profile] = current_profile) -> Location:
    """Return the location that ``text`` denotes.

    Parameters
    ----------
    profile
        Returns the profile for HDFS and its user; called only for HDFS.

    Raises
    ------
    UsageError
        If the URL is not supported, or needs a package that is not installed.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return LocalLocation(Path(text).expanduser())
    if scheme[1].lower() == "file":
        path = urlsplit(text).path
        if not path.startswith("/"):
            raise UsageError(
                _("{text} is not a file URL.").format(text=printable(text, 200)),
                _("Use file:///dir/x.ipynb."),
            )
        return LocalLocation(Path(path))
    if scheme[1].lower() == "hdfs" or _is_own_hdfs(text, profile):
        return HdfsLocation(text, profile)
    return FsspecLocation(text)
