"""Named datasets in the job root: content-addressed files, and a small descriptor of each."""

from submarine_runtime.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
