"""Lets the notebook import the files that its collected cells make: ``from model import build``.

In the job these files lie beside the program; here there are none, so an importer makes the module
from the same merged text. It runs that text on its own, as the job does. A cell that is collected
again makes the next import build the module anew.
"""

from __future__ import annotations

import importlib.machinery
import linecache
import sys
from collections.abc import Callable, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from types import CodeType, ModuleType

from submarine_jobs.program import PROGRAM, Cell, CellCollection, merge_cells, package_files


class CollectedModules(MetaPathFinder):
    """The importer of one kernel; ``collection`` gives the collected cells of the moment."""

    def __init__(self, collection: Callable[[], CellCollection]) -> None:
        self._collection = collection

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's spec if collected cells make it."""
        if not self._could_be_ours(fullname):
            return None
        # What `%%writefile` has written is imported from its file, as IPython does.
        cells = [cell for cell in self._collection().cells() if not cell.write_mode]
        names = {cell.filename for cell in cells} - {PROGRAM}
        stem = fullname.replace(".", "/")
        for name in (f"{stem}/__init__.py", f"{stem}.py"):
            if name in names or name in package_files(names):
                text = merge_cells([cell for cell in cells if cell.filename == name]).text
                loader = _Loader(name, text)
                is_package = name.endswith("/__init__.py")
                spec = importlib.machinery.ModuleSpec(
                    fullname, loader, origin=loader.code_name, is_package=is_package
                )
                spec.has_location = False
                return spec
        return None

    def _could_be_ours(self, fullname: str) -> bool:
        """Cheap: this is asked for every import of the kernel, and libraries import thousands."""
        root, dot, _ = fullname.partition(".")
        if root in sys.stdlib_module_names or not len(self._collection()):
            return False
        return not dot or isinstance(getattr(sys.modules.get(root), "__loader__", None), _Loader)

    def forget(self, cell: Cell) -> None:
        """Drop the modules that ``cell`` is part of, so that they are made anew when imported."""
        name = cell.filename.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for loaded, module in list(sys.modules.items()):
            ours = isinstance(getattr(module, "__loader__", None), _Loader)
            if ours and (loaded == name or name.startswith(f"{loaded}.")):
                del sys.modules[loaded]


class _Loader(InspectLoader):
    """Makes one module from the text of its cells."""

    def __init__(self, name: str, text: str) -> None:
        self.code_name = f"<collected cells of {name}>"
        self._text = text

    def get_source(self, fullname: str) -> str:
        """The merged text."""
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        """The compiled text; tracebacks find its lines by the name in it."""
        lines = self._text.splitlines(keepends=True)
        linecache.cache[self.code_name] = (len(self._text), None, lines, self.code_name)
        return self.source_to_code(self._text, self.code_name)
