"""Read training data: shards of files as batches, with shuffling, read-ahead and exact resumption.

The package is used inside the training program, in containers and notebooks. It needs Python 3.8
and the standard library; packages such as pyarrow are imported when a format or converter needs
them.
"""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
