"""Store job directories on HDFS (hdfs-native or WebHDFS) or on a local file system."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
