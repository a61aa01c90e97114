"""Where notebooks are read from and written to: a path, ``hdfs://``, any URL that fsspec knows.

Says which place a text names; does not read or write there, which is the place's own work.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.text import printable
from submarine_workflows.locations.local_file import LocalPlace
from submarine_workflows.locations.location import Place
from submarine_workflows.locations.remote import FsspecPlace, HdfsPlace

if TYPE_CHECKING:
    from submarine_jobs.model import Profile

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?:::[^:]+)*://")


def is_url(text: str) -> bool:
    """Whether ``text`` names something by a scheme, as a path never does."""
    return _SCHEME.match(text) is not None


def profile_in_force() -> Profile:
    """That of the settings and the environment, with no option of a command."""
    from submarine_jobs.config import load_config

    return load_config().profile


def _is_own_hdfs(text: str, profile: Callable[[], Profile]) -> bool:
    """Whether a ``webhdfs://`` URL names the profile's own HDFS; fsspec would need its user."""
    if not text.lower().startswith(("webhdfs://", "swebhdfs://")):
        return False
    from submarine_jobs.backends.yarn.cluster import HadoopConf
    from submarine_jobs.storage import hdfs_storage

    directory = profile().hadoop_conf_dir
    if directory is None:
        return False
    conf = HadoopConf(directory)
    return hdfs_storage(conf.default_fs, addresses=conf.addresses).path_of(text) is not None


def place_of(text: str, profile: Callable[[], Profile] = profile_in_force) -> Place:
    """The place that ``text`` names.

    Parameters
    ----------
    profile
        Whose HDFS is meant, and as whom; asked for only where the place is in HDFS.

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
    if scheme[1].lower() == "hdfs" or _is_own_hdfs(text, profile):
        return HdfsPlace(text, profile)
    return FsspecPlace(text)
