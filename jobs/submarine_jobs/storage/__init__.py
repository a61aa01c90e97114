"""Store job directories on HDFS (hdfs-native or WebHDFS) or on a local file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.storage.base import DEFAULT_PORTS as DEFAULT_PORTS, Storage as Storage
    from submarine_jobs.storage.hdfs import hdfs_storage as hdfs_storage
    from submarine_jobs.storage.local import LocalStorage as LocalStorage
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "base": (
                "DEFAULT_PORTS",
                "Storage",
            ),
            "hdfs": ("hdfs_storage",),
            "local": ("LocalStorage",),
        },
    )
