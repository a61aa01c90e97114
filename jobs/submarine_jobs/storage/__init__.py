"""Storage of job directories: HDFS through hdfs-native or WebHDFS, or a path of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.storage.base import (
        DEFAULT_PORTS as DEFAULT_PORTS,
        Entry as Entry,
        Storage as Storage,
    )
    from submarine_jobs.storage.hdfs_clients import hdfs_storage as hdfs_storage
    from submarine_jobs.storage.local import LocalStorage as LocalStorage
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "base": ("DEFAULT_PORTS", "Entry", "Storage"),
            "hdfs_clients": ("hdfs_storage",),
            "local": ("LocalStorage",),
        },
    )
