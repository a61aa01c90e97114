"""Lazy exports of a package: a name is imported from its module when it is first used.

A package's ``__init__`` is its public API. Importing the package costs no import of its modules,
which matters for the start of a kernel, of the command line and of the processes in containers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Callable


def lazy_exports(
    package: str, exports: dict[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package
        Full name of the package: ``__name__``.
    exports
        Names that the package exports, by the module of the package that defines them.
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def getattribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Not stored in the package: a test that replaces the name in its module is seen here.
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return getattribute, directory
