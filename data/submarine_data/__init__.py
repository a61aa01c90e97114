"""Read training data: shards of files as batches, with shuffling, read-ahead and exact resumption.

The package is used inside the training program, in containers and notebooks. It needs Python 3.8
and the standard library; packages such as pyarrow are imported when a format or converter needs
them.
"""

import os

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)

if "SUBMARINE_DATA_CONFIG" in os.environ:  # In a container.
    # cost: importlib only, and only in a container.
    from submarine_data.remote import register_filesystem as _register

    _register()
    del _register
