"""Lazy exports of a package: a name is imported from its module when it is first used.

A package's ``__init__.pyi`` declares its public API, for type checkers and at run time. Importing
the package costs no import of its modules, which matters for the start of a kernel, of the command
line and of the processes in containers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Callable, Iterator


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    The stub contains only statements of the form ``from .module import Name as Name`` or
    ``from package.module import Name as Name``. It is read through the package's loader at the
    first use, so that the package may be in a zip.

    Parameters
    ----------
    package
        Full name of the package: ``__name__``.
    """
    modules: dict[str, str] = {}

    def read() -> dict[str, str]:
        if not modules:
            module = sys.modules[package]
            loader: Any = module.__loader__
            stub = loader.get_data(f"{module.__path__[0]}/__init__.pyi").decode("utf-8")
            found = {name: source for source, name in _exports(stub)}
            # In one step: another thread that reads a part would miss names.
            modules.update(found)
        return modules

    def getattribute(name: str) -> Any:
        # Python looks up names such as __path__ and __wrapped__ in each package: read no file then.
        source = None if name.startswith("__") else read().get(name)
        if source is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Not stored in the package: a test that replaces the name in its module is seen here.
        return getattr(import_module(source, package), name)

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *read()})

    return getattribute, directory


def _exports(stub: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of each export. Compiling a pattern would take longer than this."""
    for statement in f"\n{stub}".split("\nfrom ")[1:]:
        source, _, names = statement.partition(" import ")
        end = ")" if names.startswith("(") else "\n"
        for alias in names.lstrip("(").partition(end)[0].split(","):
            name = alias.partition(" as ")[2].strip()
            if name:
                yield source, name
