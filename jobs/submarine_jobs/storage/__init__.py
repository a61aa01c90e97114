"""Storage of job directories: HDFS through hdfs-native or WebHDFS, or a path of this machine."""

from __future__ import annotations

from submarine_jobs.storage.base import Entry, Storage

__all__ = ["Entry", "Storage"]
