"""Lists what an environment consists of: the base interpreter, its library, the packages.

A virtual environment is only a few links into its base interpreter, so both are taken together and
laid out as one plain installation (``bin/python3``, ``lib/python3.x``), which works wherever it is
unpacked. Reads directories, no file's content. Conda environments are ``conda``'s business.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Parts of the standard library that no job needs.
_LEFT_OUT = frozenset(
    {"test", "idlelib", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages"}
)
_NOT_CONTENT = "__pycache__"


@dataclass(frozen=True)
class Item:
    """One file or link of an environment.

    Parameters
    ----------
    name
        Path in the archive.
    source
        Where it lies here.
    size, modified, mode
        As ``lstat`` says; nanoseconds for ``modified``.
    """

    name: str
    source: str
    size: int
    modified: int
    mode: int

    @property
    def counts(self) -> bool:
        """Whether it belongs to the content: byte code is made anew at will and does not."""
        return f"/{_NOT_CONTENT}/" not in self.name


@dataclass(frozen=True)
class Layout:
    """Where the parts of one interpreter's installation lie on this machine.

    Parameters
    ----------
    executable
        The base interpreter's own file, no link.
    library
        ``lib/python3.x`` of the base.
    packages
        Directories whose content goes to ``site-packages``, the first wins.
    scripts
        ``bin`` of the environment; None: no scripts are taken.
    shared
        Directory of ``libpython``; None where the interpreter has it built in.
    """

    version: str
    executable: Path
    library: Path
    packages: tuple[Path, ...]
    scripts: Path | None
    shared: Path | None


def this_layout(packages: tuple[Path, ...] | None = None) -> Layout:
    """The layout of the interpreter that runs this; ``packages`` instead of its own, if given."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib"))
    if packages is None:
        own = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
        packages = tuple(dict.fromkeys(path.resolve() for path in own))
    shared = sysconfig.get_config_var("Py_ENABLE_SHARED")
    libdir = sysconfig.get_config_var("LIBDIR")
    in_venv = sys.prefix != sys.base_prefix
    return Layout(
        version=version,
        executable=(base / "bin" / f"python{version}").resolve(),
        library=library,
        packages=packages,
        scripts=Path(sys.prefix) / "bin" if in_venv else None,
        shared=Path(libdir) if shared and libdir else None,
    )


def items_of(layout: Layout) -> Iterator[Item]:
    """Everything that goes into the archive, each name once; directories are implied."""
    seen: set[str] = set()
    for name, source in _sources(layout):
        if name in seen:
            continue
        seen.add(name)
        try:
            info = os.lstat(source)
        except OSError:
            continue  # gone since the listing
        if stat.S_ISLNK(info.st_mode):
            target = os.path.realpath(source)
            try:
                info = os.stat(target)
            except OSError:
                continue  # a link to nowhere
            source = target
        if stat.S_ISREG(info.st_mode):
            yield Item(name, source, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))


def fingerprint(items: list[Item]) -> str:
    """A digest of names, sizes and times: unchanged means that nothing needs to be read again."""
    digest = hashlib.sha256()
    for item in sorted(items, key=lambda item: item.name):
        if item.counts:
            digest.update(f"{item.name}\0{item.size}\0{item.modified}\0{item.mode}\n".encode())
    return digest.hexdigest()


def _sources(layout: Layout) -> Iterator[tuple[str, str]]:
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
    """All files below ``root``; ``left_out`` names entries of the top, or their beginnings."""
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
