"""Apply each ``shim_NAME.py`` beside this file after the program imports the module ``NAME``.

In the name of a file, ``__`` means a dot. Run by the launcher. A program that imports none of these
modules loads no shim. The module keeps its own loader, and tracebacks have no frame of this file.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # Importing typing would delay the program's start by some milliseconds.
if TYPE_CHECKING:
    from typing import Any

#: Module -> the module with the same shim.
NAMES = {"pytorch_lightning": "lightning"}
HERE = os.path.dirname(os.path.abspath(__file__))


class Finder:
    """A meta path finder that adds a shim to the loading of modules."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of the other finders, with ``Loader`` in front of its loader."""
        if name not in self.names:
            return None
        # cost: importlib.util, in every program of the framework.
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
    """Restore the module's own loader, load the module, and apply the shim."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        """Create the module with its own loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Load the module, then call ``activate``."""
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        name = NAMES.get(module.__name__, module.__name__)
        shim = os.path.join(HERE, "shim_" + name.replace(".", "__") + ".py")
        with open(shim, "rb") as file:
            names: dict[str, Any] = {"__name__": "_submarine_shim", "__file__": shim}
            exec(compile(file.read(), shim, "exec"), names)  # noqa: S102
        names["activate"](module)

    # Python omits the import system's frames from tracebacks; count this frame among them.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")


def watch() -> None:
    """Install the finder if there are shims."""
    found = {name[5:-3].replace("__", ".") for name in os.listdir(HERE) if name.startswith("shim_")}
    found.update(name for name in NAMES if NAMES[name] in found)
    if found:
        sys.meta_path.insert(0, Finder(found))


if __name__ == "_submarine_shims":
    watch()
