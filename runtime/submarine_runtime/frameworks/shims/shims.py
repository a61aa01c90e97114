"""Applies each ``shim_NAME.py`` beside this file once the program imports the module ``NAME``.

Run by the launcher. A program that imports none of them loads none; the module keeps its own
loader, and the import leaves no frame of ours in a traceback.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing would cost the program's start some milliseconds
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class Finder:
    """Finds nothing itself; has a shim follow the loading of the modules that want one."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the others find, with our loader in front of its own."""
        if name not in self.names:
            return None
        from importlib.util import find_spec

        self.names.discard(name)
        if not self.names:
            sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = Loader(spec.loader)
            spec.loader = loader
        return spec


class Loader:
    """Gives the module its own loader back, lets it load, and applies the shim."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        """As the own loader does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Load, then ``activate``."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        shim = os.path.join(HERE, "shim_" + module.__name__ + ".py")
        with open(shim, "rb") as file:
            names: dict[str, Any] = {"__name__": "_submarine_shim", "__file__": shim}
            exec(compile(file.read(), shim, "exec"), names)  # noqa: S102
        names["activate"](module)

    # Python leaves the import system's own frames out of a traceback; this is one of them.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")


def watch() -> None:
    """Begin to look at imports."""
    found = {name[5:-3] for name in os.listdir(HERE) if name.startswith("shim_")}
    if found:
        sys.meta_path.insert(0, Finder(found))


if __name__ == "_submarine_shims":
    watch()
