"""Where jobs run: ``yarn`` (skein), ``local`` (this machine), or a backend of another package."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
