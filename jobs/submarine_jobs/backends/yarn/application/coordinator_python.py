"""Pack the interpreter of coordinators: the base of this Python, skein and gRPC.

The coordinator needs skein, and the compiled gRPC of skein fits one Python version. So both are in
one archive, which is made once on this machine, uploaded once to the cache of the job root, and
unpacked once on each node. It is independent of the user's environment. If the nodes have such a
Python, the setting ``coordinator_python`` names it instead.

The archive has byte code in place of the sources: a node manager without Hadoop's native library
starts ``chmod`` for each file that it has unpacked (6 ms each on a minicluster).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from submarine_jobs import concurrency
from submarine_jobs.config import make_private
from submarine_jobs.environments import (
    EnvironmentFile,
    InterpreterLayout,
    current_layout,
    fingerprint,
    list_items,
    write_archive,
)
from submarine_jobs.errors import NotSubmittedError, SubmarineError
from submarine_jobs.storage import Storage
from submarine_runtime.translation import _

#: Name of the unpacked archive in a container, and the interpreter in it.
DIRECTORY = "coordinator-python"
INTERPRETER = f"{DIRECTORY}/bin/python3"
_DISTRIBUTIONS = ("skein", "grpcio", "protobuf", "PyYAML", "typing_extensions")
#: Omitted files of the distributions: skein's jar has a cached file, the rest is documentation.
_LEFT_OUT = ("skein/java/", "skein/recipes/", "skein/cli.py", "skein/tornado.py", "yaml/_", "..")
#: Omitted modules of the standard library that the coordinator does not need.
_NO_LIBRARY = (
    "tkinter/",
    "pydoc_data/",
    "curses/",
    "sqlite3/",
    "unittest/",
    "distutils/",
    "ctypes/test/",
    "venv/",
    "wsgiref/",
    "xmlrpc/",
    "dbm/",
    *(f"lib-dynload/{name}" for name in ("_test", "_codecs_", "_curses", "_tkinter", "_sqlite")),
)
#: Omitted files for compilers and for installers of other systems.
_USELESS = (".a", ".exe", f"/libpython{sys.version_info[0]}.{sys.version_info[1]}.so")
_FORM = b"submarine coordinator 3\n"
_LARGE = 100 << 10
#: Bytes of the header of byte code: magic number, flags, time and size of the source.
_CODE_HEADER = struct.Struct("<4sIII")
_STRIP_SECONDS = 60


class CoordinatorPython:
    """The archive for one client and one job root.

    Parameters
    ----------
    storage, directory
        The cache of the job root.
    state_dir
        Host-local directory of the archive, which is used for all clusters.
    """

    def __init__(self, storage: Storage, directory: str, state_dir: Path) -> None:
        self._storage = storage
        self._directory = directory
        self._kept = state_dir / "coordinator-python"
        self._lock = threading.Lock()
        self._path: str | None = None

    def path(self) -> str:
        """Return the path of the archive in the storage; make and upload it if it is missing.

        Raises
        ------
        NotSubmittedError
            If it cannot be made on this machine.
        StorageError
            If it cannot be uploaded.
        """
        with self._lock:
            if self._path is None:
                try:
                    self._path = self._ensure()
                except (OSError, ValueError, importlib.metadata.PackageNotFoundError) as exc:
                    raise NotSubmittedError(
                        _("The coordinator's Python could not be packed: {error}.").format(
                            error=exc
                        ),
                        _("Set coordinator_python to one on the nodes that has skein."),
                    ) from exc
            return self._path

    def forget(self) -> None:
        """Check the storage again at the next call: the cache may have been emptied."""
        with self._lock:
            self._path = None

    def make_later(self) -> None:
        """Make and upload in the background; errors are raised when it is needed."""

        def work() -> None:
            with contextlib.suppress(SubmarineError):
                self.path()

        if self._path is None:
            threading.Thread(target=work, daemon=True, name="submarine-coordinator-python").start()

    def _ensure(self) -> str:
        layout = replace(current_layout(()), scripts=None)
        items = _items(layout)
        key = hashlib.sha256(_FORM + fingerprint(items).encode()).hexdigest()[:24]
        path = f"{self._directory}/coordinator-{key}.tar.gz"
        if self._storage.stat(path) is None:
            self._storage.upload(self._local(key, items, layout), path)
        return path

    def _local(self, key: str, items: list[EnvironmentFile], layout: InterpreterLayout) -> Path:
        """Return the local archive, made once under a lock."""
        make_private(self._kept)
        target = self._kept / f"{key}.tar.gz"
        with concurrency.file_lock(self._kept / "lock"):
            if not target.exists():
                with tempfile.TemporaryDirectory(prefix=".tmp-", dir=self._kept) as scratch:
                    made = Path(scratch) / target.name
                    files = [_stripped(item, Path(scratch)) for item in _without_sources(items)]
                    write_archive(files, layout, made)
                    made.rename(target)
                for old in self._kept.glob("*.tar.gz"):
                    if old != target:
                        old.unlink(missing_ok=True)
        return target


def _items(layout: InterpreterLayout) -> list[EnvironmentFile]:
    library = f"lib/python{layout.version}/"
    found = []
    for item in list_items(layout):
        below = item.name.removeprefix(library)
        old_code = below.endswith((".opt-1.pyc", ".opt-2.pyc"))
        if not (below.startswith(_NO_LIBRARY) or old_code or below.endswith(_USELESS)):
            found.append(item)
    return found + list(_packages(f"{library}site-packages/"))


def _without_sources(items: list[EnvironmentFile]) -> Iterator[EnvironmentFile]:
    """Put byte code that is current in the place of its source; other byte code is omitted."""
    codes = {item.name: item for item in items if item.name.endswith(".pyc")}
    tag = sys.implementation.cache_tag
    for item in items:
        if item.name.endswith(".pyc"):
            continue
        path = Path(item.name)
        code = codes.get(f"{path.parent}/__pycache__/{path.stem}.{tag}.pyc")
        if path.suffix == ".py" and code is not None and _is_current(code, item):
            yield replace(code, name=f"{item.name}c")
        else:
            yield item


def _is_current(code: EnvironmentFile, source: EnvironmentFile) -> bool:
    """Return whether byte code was made from a source as it is now.

    Python checks this before it uses the code, but not of code without its source.
    """
    with open(code.source, "rb") as file:
        header = file.read(_CODE_HEADER.size)
    modified = source.modified // 10**9
    expected = (importlib.util.MAGIC_NUMBER, 0, modified & 0xFFFFFFFF, source.size & 0xFFFFFFFF)
    return len(header) == _CODE_HEADER.size and _CODE_HEADER.unpack(header) == expected


def _packages(place: str) -> Iterator[EnvironmentFile]:
    """Return the files of the distributions, with their byte code if there is any."""
    for name in _DISTRIBUTIONS:
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            below = file.as_posix()
            if below.startswith(_LEFT_OUT) or ".dist-info/" in below or below.endswith(".pyc"):
                continue
            source = str(distribution.locate_file(file))
            yield _item(place + below, source)
            if below.endswith(".py"):
                code = importlib.util.cache_from_source(source)
                if os.path.exists(code):
                    parent = Path(place + below).parent
                    yield _item(f"{parent}/__pycache__/{os.path.basename(code)}", code)


def _item(name: str, source: str) -> EnvironmentFile:
    info = os.stat(source)
    return EnvironmentFile(name, source, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))


def _stripped(item: EnvironmentFile, scratch: Path) -> EnvironmentFile:
    """Return a library without symbols, if this machine can strip them."""
    if not item.name.startswith(("lib/libpython", "lib/python")) or item.size < _LARGE:
        return item
    if ".so" not in Path(item.name).name or "/site-packages/" in item.name:
        return item
    program = shutil.which("strip")
    if program is None:
        return item
    target = scratch / Path(item.name).name
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [program, "--strip-unneeded", "-o", str(target), item.source],
            check=True,
            capture_output=True,
            timeout=_STRIP_SECONDS,
        )
        return replace(item, source=str(target), size=target.stat().st_size)
    return item
