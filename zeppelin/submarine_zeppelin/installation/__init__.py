"""Installation of the interpreter group in Zeppelin: install, check, uninstall."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
