"""Turn a spec and a bundle into a running job: directory, intent, configuration."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
