"""Files that are not on this machine: HDFS by WebHDFS or hdfs-native, other schemes by fsspec."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
