"""Import the files that collected cells make in the notebook itself: ``from model import build``.

In the job these files are next to the program. In the kernel no such files exist, so an importer
builds each module from the merged text of its cells. After a cell is collected again, the next
import builds the module again.
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
    """The importer of one kernel; ``collection`` returns the collected cells."""

    def __init__(self, collection: Callable[[], CellCollection]) -> None:
        self._collection = collection

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that collected cells make, else None."""
        if not self._may_be_collected(fullname):
            return None
        # Cells with `%%writefile` have a file, from which Python imports.
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

    def _may_be_collected(self, fullname: str) -> bool:
        """Exclude other modules cheaply: it is called for each import in the kernel."""
        root, dot, _ = fullname.partition(".")
        if root in sys.stdlib_module_names or not len(self._collection()):
            return False
        return not dot or isinstance(getattr(sys.modules.get(root), "__loader__", None), _Loader)

    def forget(self, cell: Cell) -> None:
        """Remove the modules that contain ``cell``, so that the next import builds them again."""
        name = cell.filename.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for loaded, module in list(sys.modules.items()):
            collected = isinstance(getattr(module, "__loader__", None), _Loader)
            if collected and (loaded == name or name.startswith(f"{loaded}.")):
                del sys.modules[loaded]


class _Loader(InspectLoader):
    """Build one module from the text of its cells."""

    def __init__(self, name: str, text: str) -> None:
        self.code_name = f"<collected cells of {name}>"
        self._text = text

    def get_source(self, fullname: str) -> str:
        """Return the merged text."""
        return self._text

    def get_code(self, fullname: str) -> CodeType:
        """Compile the text, and register its lines for tracebacks."""
        lines = self._text.splitlines(keepends=True)
        linecache.cache[self.code_name] = (len(self._text), None, lines, self.code_name)
        return self.source_to_code(self._text, self.code_name)
