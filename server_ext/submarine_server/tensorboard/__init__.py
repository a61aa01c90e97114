"""TensorBoard below the server's base URL: ``submarine/tensorboard/<job>[,<job>...]/``."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
