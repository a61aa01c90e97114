"""Builds the zip that travels into containers: ``submarine_runtime`` and a ``__main__.py``.

The same sources give the same bytes, so its digest names it. Besides each source lies its byte
code for this interpreter's version, which another version ignores: that spares a container with
the same Python the compiling. Does not upload anything.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import submarine_runtime
from submarine_jobs.config import make_private

_MAIN = b"""import os
import sys

from submarine_runtime.__main__ import main

status = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


class RuntimeZip(NamedTuple):
    """The zip's bytes and their SHA-256 in hex."""

    data: bytes
    digest: str

    @property
    def name(self) -> str:
        """File name in the job root's cache."""
        return f"runtime-{self.digest}.zip"


@cache
def runtime_zip() -> RuntimeZip:
    """The zip of the runtime that is installed here; built once a process."""
    root = Path(submarine_runtime.__file__).parent
    files: dict[str, bytes] = {"__main__.py": _MAIN}
    for path in root.rglob("*.py"):
        files[f"{root.name}/{path.relative_to(root).as_posix()}"] = path.read_bytes()
    for name in [name for name in files if name.startswith(f"{root.name}/")]:
        files[f"{name}c"] = _byte_code(name, files[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIMESTAMP)
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, files[name])
    data = stream.getvalue()
    return RuntimeZip(data, hashlib.sha256(data).hexdigest())


def write_runtime_zip(directory: Path) -> Path:
    """The zip as a file in ``directory``, written unless it is there."""
    built = runtime_zip()
    path = directory / built.name
    if not path.exists():
        make_private(directory)
        temporary = directory / f".tmp-{built.name}-{os.getpid()}"
        temporary.write_bytes(built.data)
        temporary.rename(path)
    return path


def _byte_code(name: str, source: bytes) -> bytes:
    # PEP 552: bound to the source's hash, not to a time, and not checked, as both come in one zip.
    # Without docstrings and assertions: a third less to bring and to read.
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
    # Version 2 has no back references: whether a later one writes them hangs on reference counts,
    # that is, on what else this process has loaded, and the bytes would not always be the same.
    return header + importlib.util.source_hash(source) + marshal.dumps(code, 2)
