"""Where jobs run: ``yarn`` (skein) and ``local`` (processes on this machine)."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
