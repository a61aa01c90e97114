"""Finds packages that an environment has only as a pointer to their source: editable installs.

On a node the pointer leads nowhere, so their source is packed as if it were installed. What pip and
setuptools write is read as data: paths in ``.pth`` files, and the ``MAPPING`` of a finder module
(PEP 660). Nothing is imported or executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: Submarine itself is brought along by other means and never imported by a program.
_OURS = "submarine_"


def editable_sources(packages: Path) -> Iterator[tuple[str, Path]]:
    """Import name and source (a package's directory or a module's file) of each, sorted.

    Parameters
    ----------
    packages
        A ``site-packages`` directory.
    """
    found: dict[str, Path] = {}
    for path in sorted(packages.glob("*.pth")):
        for directory in _directories(path):
            if packages not in (directory, *directory.parents):
                found.update(_importable(directory))
    for path in sorted(packages.glob("__editable___*_finder.py")):
        found.update(_mapping(path))
    for name in sorted(found):
        if not name.startswith(_OURS):
            yield name, found[name]


def _directories(path: Path) -> Iterator[Path]:
    with suppress(OSError, UnicodeDecodeError):
        for line in path.read_text().splitlines():
            text = line.strip()
            if text and not text.startswith(("#", "import ", "import\t")):
                directory = path.parent / text
                if directory.is_dir():
                    yield directory.resolve()


def _importable(directory: Path) -> Iterator[tuple[str, Path]]:
    for entry in directory.iterdir():
        if (entry / "__init__.py").is_file() and entry.name.isidentifier():
            yield entry.name, entry
        elif entry.suffix == ".py" and entry.stem.isidentifier() and entry.name != "setup.py":
            yield entry.stem, entry


def _mapping(path: Path) -> dict[str, Path]:
    """The literal ``MAPPING`` of a finder: import name -> where it lies."""
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.parse(path.read_bytes()).body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "MAPPING":
                value = ast.literal_eval(node.value)
                return {str(name): Path(str(where)) for name, where in value.items()}
    return {}
