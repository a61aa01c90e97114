"""List the files of an environment: interpreter, standard library, packages, editable installs.

A virtual environment consists of links to its base interpreter, so the archive contains both as one
installation (``bin/python3``, ``lib/python3.x``), which works in any directory. ``conda`` packs
conda environments.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

#: Parts of the standard library that are not packed.
_LEFT_OUT = frozenset(
    {"test", "idlelib", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages"}
)
_NOT_CONTENT = "__pycache__"
#: Submarine's own packages, which programs do not import.
_OWN_PREFIX = "submarine_"


@dataclass(frozen=True)
class EnvironmentFile:
    """File or link of an environment.

    Parameters
    ----------
    name
        Path in the archive.
    source
        Path on this machine.
    size, modified, mode
        From ``lstat``; ``modified`` in nanoseconds.
    changed
        Time of the last change of the file's content or properties, in nanoseconds; a tool that
        keeps the time of modification cannot set it.
    """

    name: str
    source: str
    size: int
    modified: int
    mode: int
    changed: int = 0

    @property
    def counts(self) -> bool:
        """Whether the digest includes it: byte code does not count."""
        return f"/{_NOT_CONTENT}/" not in self.name


@dataclass(frozen=True)
class InterpreterLayout:
    """Directories of an interpreter's installation on this machine.

    Parameters
    ----------
    executable
        The file of the base interpreter, not a link.
    library
        ``lib/python3.x`` of the base.
    packages
        Directories that are merged into ``site-packages``; the first has priority.
    scripts
        ``bin`` of the environment; None: no scripts are packed.
    shared
        Directory of ``libpython``; None if it is linked statically.
    """

    version: str
    executable: Path
    library: Path
    packages: tuple[Path, ...]
    scripts: Path | None
    shared: Path | None


def current_layout(packages: tuple[Path, ...] | None = None) -> InterpreterLayout:
    """Return the layout of this interpreter, with ``packages`` instead of its own if given."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib"))
    if packages is None:
        own = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
        packages = tuple(dict.fromkeys(path.resolve() for path in own))
    shared = sysconfig.get_config_var("Py_ENABLE_SHARED")
    libdir = sysconfig.get_config_var("LIBDIR")
    in_venv = sys.prefix != sys.base_prefix
    return InterpreterLayout(
        version=version,
        executable=(base / "bin" / f"python{version}").resolve(),
        library=library,
        packages=packages,
        scripts=Path(sys.prefix) / "bin" if in_venv else None,
        shared=Path(libdir) if shared and libdir else None,
    )


def list_items(layout: InterpreterLayout) -> Iterator[EnvironmentFile]:
    """Yield the files of the archive, each name once; directories are implied."""
    listed: set[str] = set()
    for name, source in _sources(layout):
        if name in listed:
            continue
        listed.add(name)
        try:
            info = os.lstat(source)
        except OSError:
            continue  # removed since the listing
        if stat.S_ISLNK(info.st_mode):
            target = os.path.realpath(source)
            try:
                info = os.stat(target)
            except OSError:
                continue  # a dangling link
            source = target
        if stat.S_ISREG(info.st_mode):
            yield _file(name, source, info)


def kernel_items() -> list[EnvironmentFile]:
    """Return all files of the environment of this interpreter."""
    return environment_items(current_layout())


def layout_of(environment: Path) -> InterpreterLayout:
    """Return the layout of a virtual environment of this interpreter's base."""
    layout = current_layout()
    packages = environment / "lib" / f"python{layout.version}" / "site-packages"
    return replace(layout, packages=(packages,), scripts=environment / "bin")


def environment_items(layout: InterpreterLayout) -> list[EnvironmentFile]:
    """Return all files of an environment, with the sources of editable packages."""
    items = {item.name: item for item in list_items(layout)}
    for packages in layout.packages:
        for name, source in editable_sources(packages):
            for item in _source_items(f"lib/python{layout.version}/site-packages", name, source):
                items.setdefault(item.name, item)
    return list(items.values())


def _source_items(place: str, name: str, source: Path) -> Iterator[EnvironmentFile]:
    files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    for path in files:
        below = f"{name}.py" if path == source else f"{name}/{path.relative_to(source)}"
        yield _file(f"{place}/{below}", str(path), path.stat())


def _file(name: str, source: str, info: os.stat_result) -> EnvironmentFile:
    mode = stat.S_IMODE(info.st_mode)
    return EnvironmentFile(
        name, source, info.st_size, info.st_mtime_ns, mode, changed=info.st_ctime_ns
    )


def fingerprint(items: list[EnvironmentFile], *, changes: bool = False) -> str:
    """Return a digest of names, sizes, times and modes, to detect changes without reading files.

    Parameters
    ----------
    changes
        Whether it includes ``changed``, which differs between copies of an environment.
    """
    digest = hashlib.sha256()
    for item in sorted(items, key=lambda item: item.name):
        if item.counts:
            changed = item.changed if changes else ""
            text = f"{item.name}\0{item.size}\0{item.modified}\0{item.mode}\0{changed}\n"
            digest.update(text.encode())
    return digest.hexdigest()


def _sources(layout: InterpreterLayout) -> Iterator[tuple[str, str]]:
    python = f"python{layout.version}"
    yield f"bin/{python}", str(layout.executable)
    if layout.shared is not None:
        for path in sorted(layout.shared.glob(f"libpython{layout.version}*.so*")):
            yield f"lib/{path.name}", str(path)
    yield from _tree(layout.library, f"lib/{python}", _LEFT_OUT | {f"config-{layout.version}"})
    for packages in layout.packages:
        if packages.is_dir():
            yield from _tree(packages, f"lib/{python}/site-packages", frozenset())
    if layout.scripts is not None:
        for entry in sorted(os.scandir(layout.scripts), key=lambda entry: entry.name):
            if entry.is_file(follow_symlinks=False):
                yield f"bin/{entry.name}", entry.path


def _tree(root: Path, name: str, left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield all files below ``root`` except the top-level entries ``left_out`` (or prefixes)."""
    for directory, subdirectories, files in os.walk(root):
        below = os.path.relpath(directory, root)
        if below == ".":
            subdirectories[:] = [d for d in subdirectories if not _is_left_out(d, left_out)]
        subdirectories.sort()
        place = name if below == "." else f"{name}/{below}"
        for file in sorted(files):
            yield f"{place}/{file}", os.path.join(directory, file)


def _is_left_out(entry: str, left_out: frozenset[str]) -> bool:
    return entry in left_out or any(
        entry.startswith(f"{word}-") for word in left_out if word.startswith("config-")
    )


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
        if not name.startswith(_OWN_PREFIX):
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
    """Return the literal ``MAPPING`` of a finder: import name -> path."""
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.parse(path.read_bytes()).body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "MAPPING":
                value = ast.literal_eval(node.value)
                return {str(name): Path(str(where)) for name, where in value.items()}
    return {}
