"""Make a conda channel in a directory and an environment of it, without a server.

Run by the Python of ``.venv-conda``: ``conda_channel.py PYTHON_PREFIX CHANNEL ENVIRONMENT``. The
channel has the given interpreter as the package ``python``, and a package ``toy``.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import platform
import sys
import tarfile
from pathlib import Path
from typing import Any

import rattler
from rattler.index import index_fs

#: Parts of an installation that the interpreter of the test does not need.
LEFT_OUT = (
    *("test", "idlelib", "tkinter", "lib2to3", "site-packages", "__pycache__", "config-"),
    *("ensurepip", "pydoc_data", "turtle", "_test"),
)


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """Add a file to an archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def write_package(
    channel: Path, subdir: str, index: dict[str, Any], files: dict[str, tuple[bytes, int]]
) -> None:
    """Write a package: its files, and their description."""
    folder = channel / subdir
    folder.mkdir(parents=True, exist_ok=True)
    paths = [
        {
            "_path": name,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_in_bytes": len(data),
        }
        for name, (data, _mode) in sorted(files.items())
    ]
    about = {
        "index.json": {"build_number": 0, "subdir": subdir, **index},
        "paths.json": {"paths": paths, "paths_version": 1},
        "about.json": {},
    }
    if index.get("noarch") == "python":
        about["link.json"] = {"noarch": {"type": "python"}, "package_metadata_version": 1}
    package = folder / f"{index['name']}-{index['version']}-{index['build']}.tar.bz2"
    with tarfile.open(package, "w:bz2", compresslevel=1) as archive:
        for name, content in about.items():
            add(archive, f"info/{name}", json.dumps(content).encode())
        for name, (data, mode) in sorted(files.items()):
            add(archive, name, data, mode)


def interpreter(prefix: Path, version: str) -> dict[str, tuple[bytes, int]]:
    """Return the files of the interpreter: name -> content and mode."""
    library = prefix / f"lib/python{version}"
    found = {}
    for path in [prefix / f"bin/python{version}", *library.rglob("*")]:
        below = path.relative_to(prefix)
        if path.is_file() and not any(part.startswith(LEFT_OUT) for part in below.parts):
            found[str(below)] = (path.read_bytes(), path.stat().st_mode & 0o777)
    for path in prefix.glob(f"lib/libpython{version}*"):
        found[str(path.relative_to(prefix))] = (path.read_bytes(), 0o755)
    for name in ("bin/python3", "bin/python"):
        found[name] = found[f"bin/python{version}"]
    return found


async def main(prefix: Path, channel: Path, target: Path) -> None:
    """Write the channel and install its packages."""
    version = platform.python_version()
    short = ".".join(version.split(".")[:2])
    index: dict[str, Any] = {"name": "python", "version": version, "build": "local_0"}
    write_package(channel, "linux-64", {**index, "depends": []}, interpreter(prefix, short))
    index = {"name": "toy", "version": "1.0", "build": "py_0", "noarch": "python"}
    files = {"site-packages/toy.py": (b"VALUE = 42\n", 0o644)}
    write_package(channel, "noarch", {**index, "depends": ["python >=3.8"]}, files)
    await index_fs(channel)
    records = await rattler.solve(
        [rattler.Channel(channel.resolve().as_uri())],
        ["toy", f"python {short}.*"],
        platforms=["linux-64", "noarch"],
        virtual_packages=rattler.VirtualPackage.detect(),
    )
    await rattler.install(records, target_prefix=target, show_progress=False)


asyncio.run(main(*map(Path, sys.argv[1:4])))
