"""Build the zips for containers: ``submarine_runtime`` to run, ``submarine_data`` to import.

The same sources give the same bytes, and a file is named by its digest. A zip also contains byte
code for the version of this interpreter, so that a container with the same version does not
compile; other versions ignore it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import re
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import submarine_data
import submarine_runtime
from submarine_jobs.config import make_private
from submarine_runtime.files import replace_file

_MAIN = b"""import os
import sys

from submarine_runtime.__main__ import main

status = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)

#: Directories with files that the agent copies beside the program: their byte code is not used.
_COPIED = ("launcher", "shims", "values")
#: Modules that few jobs load, or a job at its end or beside its program, are compiled there (2 to
#: 10 ms each): byte code is most of the zip.
_SOURCE_ONLY = frozenset(
    f"submarine_runtime/{name}.py"
    for name in (
        *("publication", "agent/outputs/streams", "agent/outputs/task_outputs"),
        *("agent/measurement/event_files", "agent/measurement/log_scalars"),
        *("agent/measurement/scalar_files", "agent/measurement/training_scalars"),
        *("agent/preparation/python_environment", "agent/program/input_streams"),
        *("agent/program/first_failure", "coordinator/placement/image_failure"),
        *("frameworks/lost_peers", "yarn/page_html", "yarn/page_text"),
        *("coordinator/job_directory/job_outputs", "tensorboards/role"),
        *("yarn/digest", "yarn/unregistration", "protocol/environment_layers"),
        *("agent/measurement/activity", "agent/single_task/idleness", "stacks/capture"),
        *("agent/sync/chief_checkpoints", "coordinator/machine/stalls", "stacks/folding"),
        *("coordinator/server/stack_collector", "frameworks/helpers/rendezvous"),
        *("tensorboards/job_files", "gpus/device_locks", "gpus/nvml"),
        *("restore_points/survey", "restore_points/union", "snapshots/versions"),
    )
)
_COMMENT = re.compile(rb"^ *#.*$", re.MULTILINE)
#: A text in three quotes that begins a line, and with a word: the end of another text does not.
_DOCSTRING = re.compile(rb'^( *)"""(?=[\w`*\'])(.*?)"""$', re.MULTILINE | re.DOTALL)


#: Parts of the runtime that ``submarine_data`` imports.
_DATA_MODULES = (
    *("__init__.py", "backoff.py", "cluster_http.py", "files.py", "interpreter_exit.py", "lazy.py"),
    *("protobuf.py", "publication.py", "translation.py"),
    *("kerberos", "protocol", "snapshots", "storage"),
)


class PackageZip(NamedTuple):
    """The name of the main package, the zip's bytes and their SHA-256 in hex."""

    package: str
    data: bytes
    digest: str

    @property
    def name(self) -> str:
        """File name in the cache of the job root."""
        return f"{self.package}-{self.digest}.zip"


@cache
def runtime_name() -> str:
    """Return the file name of the zip of the installed runtime."""
    return runtime_zip().name


def forget_runtime_zip() -> None:
    """Free the zip (1.3 MB). It is built again (0.8 s) for a job root that lacks it."""
    runtime_zip.cache_clear()


@cache
def runtime_zip() -> PackageZip:
    """Return the zip of the installed runtime; it is built once until ``forget_runtime_zip``."""
    root = Path(submarine_runtime.__file__).parent
    return _zip_of("runtime", {"__main__.py": _MAIN, **_sources(root, [root])})


@cache
def data_zip() -> PackageZip:
    """Return the zip of ``submarine_data`` with what it imports of the runtime."""
    root, data = Path(submarine_runtime.__file__).parent, Path(submarine_data.__path__[0])
    used = [root / name for name in _DATA_MODULES]
    return _zip_of(data.name, {**_sources(root, used), **_sources(data, [data], docstrings=True)})


def _sources(root: Path, paths: Iterable[Path], *, docstrings: bool = False) -> dict[str, bytes]:
    """Return name -> content of modules below ``root``: sources, byte code and stubs."""
    files: dict[str, bytes] = {}
    found = (one for path in paths for one in ([path] if path.is_file() else path.rglob("*.py*")))
    for path in found:
        if path.suffix not in (".py", ".pyi"):
            continue
        name, content = f"{root.name}/{path.relative_to(root).as_posix()}", path.read_bytes()
        if path.suffix == ".py":
            content = content if docstrings else without_docstrings(content)
            if path.parent.name not in _COPIED and name not in _SOURCE_ONLY:
                files[f"{name}c"] = _byte_code(name, content, optimize=0 if docstrings else 2)
        files[name] = content
    return files


def _zip_of(package: str, files: Mapping[str, bytes]) -> PackageZip:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIMESTAMP)
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            # 0.1 s more than the default level, and 8 kB less in each container.
            archive.writestr(info, files[name], compresslevel=8)
    data = stream.getvalue()
    return PackageZip(package, data, hashlib.sha256(data).hexdigest())


def write_runtime_zip(directory: Path) -> Path:
    """Write the zip to ``directory`` unless it exists, and return its path."""
    built = runtime_zip()
    path = directory / built.name
    if not path.exists():
        make_private(directory)
        replace_file(path, built.data)
    return path


def without_docstrings(source: bytes) -> bytes:
    """Return a module without docstrings and lines of comment, and with the same line numbers.

    Tracebacks in containers show its lines; docstrings are a tenth of the archive. Both are found
    by their form in this project, because a parser takes 0.3 s for all modules; a test compares
    the byte code.
    """
    source = _COMMENT.sub(b"", source)
    return _DOCSTRING.sub(lambda found: found[1] + b'""' + b"\n" * found[2].count(b"\n"), source)


def _byte_code(name: str, source: bytes, optimize: int) -> bytes:
    # PEP 552, unchecked hash: source and byte code come in one zip. optimize=2 removes docstrings
    # and assertions, which makes the byte code a third smaller.
    code = compile(source, name, "exec", dont_inherit=True, optimize=optimize)
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
    # Marshal version 2 has no back references. Later versions write them depending on reference
    # counts, so the bytes would depend on what else this process has loaded.
    return header + importlib.util.source_hash(source) + marshal.dumps(code, 2)
