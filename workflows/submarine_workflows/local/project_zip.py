"""Unpack the zip file of a project for one run, as Azkaban does. Its content is untrusted."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from submarine_jobs.errors import UsageError

MAX_FILES = 5000
MAX_BYTES = 1 << 30
_CHUNK = 1 << 20


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack ``archive`` into ``folder``, which is created; return the folder.

    Raises
    ------
    UsageError
        If it is not a zip file, is too large, or contains a path outside the folder.
    """
    folder.mkdir(mode=0o700)
    left = MAX_BYTES
    try:
        with zipfile.ZipFile(archive) as found:
            infos = [info for info in found.infolist() if not info.is_dir()]
            if len(infos) > MAX_FILES:
                raise UsageError(f"{archive} has more than {MAX_FILES} files.")
            for info in infos:
                target = folder / _inside(archive, info.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                with found.open(info) as source, target.open("xb") as file:
                    # A small zip file may unpack to any size.
                    while data := source.read(_CHUNK):
                        left -= len(data)
                        if left < 0:
                            raise UsageError(f"{archive} contains more than {MAX_BYTES >> 20} MiB.")
                        file.write(data)
                # Scripts are started by path.
                target.chmod(0o700 if info.external_attr >> 16 & 0o100 else 0o600)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as exc:
        raise UsageError(f"{archive} cannot be unpacked: {exc}.") from None
    return folder


def _inside(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        raise UsageError(
            f"{archive} contains the path {name[:80]!r}, which is outside the project."
        )
    return path
