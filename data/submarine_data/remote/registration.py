"""Make ``hdfs://`` of fsspec this package's file system.

In a job that happens when ``submarine_data`` is imported. fsspec itself is not imported for it: an
import hook registers the classes as soon as the program imports fsspec.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Sequence

_NAMES = ("hdfs", "webhdfs", "swebhdfs", "viewfs")
_MODULE = "submarine_data.remote.fsspec_hdfs"
_CLASS = f"{_MODULE}.HdfsFileSystem"


def register_filesystem() -> None:
    """Register the file system for hdfs, webhdfs, swebhdfs and viewfs, now or with fsspec's import.

    It replaces other implementations, such as those of hdfs-native and of fsspec itself.
    """
    module = sys.modules.get("fsspec")
    # A module that is being imported has no registry yet.
    if module is not None and hasattr(module, "register_implementation"):
        _register(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register(fsspec: Any) -> None:
    for name in _NAMES:
        fsspec.register_implementation(name, _CLASS, clobber=True)
        if name in fsspec.registry:
            # A class that is in use already has priority over the name of one.
            made = fsspec.registry[name]
            if f"{made.__module__}.{made.__qualname__}" != _CLASS:
                module = importlib.import_module(_MODULE)
                fsspec.register_implementation(name, module.HdfsFileSystem, clobber=True)


class _Finder(MetaPathFinder):
    """Finds fsspec once, and adds the registration to the end of its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``MetaPathFinder``."""
        if fullname != "fsspec":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            look: Any = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = look(fullname, path, target) if look else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    """A module's own loader, and the registration after it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See ``Loader``."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """See ``Loader``."""
        self._loader.exec_module(module)
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        _register(module)
