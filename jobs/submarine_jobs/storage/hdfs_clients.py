"""Which of the two clients of HDFS acts as whom; does nothing on HDFS itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from submarine_jobs.model import hadoop_user
from submarine_jobs.storage.hdfs import HdfsStorage
from submarine_jobs.storage.webhdfs import WebHdfsStorage


def hdfs_storage(
    default_fs: str,
    *,
    conf_dir: Path | None = None,
    webhdfs: Sequence[str] = (),
    addresses: Collection[str] = (),
    user: str | None = None,
    timeout: float = 20.0,
) -> HdfsStorage | WebHdfsStorage:
    """HDFS as a user: the process's own by hdfs-native, any other by WebHDFS.

    hdfs-native takes the user of simple authentication from the environment whenever it connects,
    so it can never act as a second one in the same process.

    Parameters
    ----------
    default_fs
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    conf_dir
        Hadoop client configuration (core-site.xml, hdfs-site.xml).
    webhdfs
        Base URLs of the NameNodes' web ports.
    addresses
        Further prefixes of the same file system; see ``HadoopConf.addresses``.
    user
        HDFS user; None: ``HADOOP_USER_NAME`` or the account's name, as Hadoop does it.
    timeout
        Seconds that one call may take.
    """
    made: HdfsStorage | WebHdfsStorage
    if user is not None and user != hadoop_user():
        made = WebHdfsStorage(default_fs, webhdfs=webhdfs, user=user, timeout=timeout)
    else:
        made = HdfsStorage(
            default_fs, conf_dir=conf_dir, webhdfs=webhdfs, user=user, timeout=timeout
        )
    made.addresses = frozenset(address.lower() for address in addresses)
    return made
