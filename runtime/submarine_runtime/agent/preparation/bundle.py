"""Unzip the bundle into the program's directory; reject paths outside it."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile

from submarine_runtime.storage import make_directories

MAX_FILES = 100_000
MAX_BYTES = 8 << 30


class BundleError(Exception):
    """The bundle is damaged or malicious; one sentence."""


def unpack(bundle: str, directory: str) -> None:
    """Unzip ``bundle`` into ``directory``, which is created.

    Raises
    ------
    BundleError
        For a file that is not a zip, a path out of the directory, a link, a device, or exceeded
        limits.
    OSError
        If the disk fails.
    """
    os.makedirs(directory, 0o700, exist_ok=True)
    try:
        with zipfile.ZipFile(bundle) as archive:
            members = archive.infolist()
            if len(members) > MAX_FILES or sum(m.file_size for m in members) > MAX_BYTES:
                raise BundleError("the bundle holds too many or too large files")
            for member in members:
                _extract(archive, member, directory)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as exc:
        raise BundleError(f"the bundle is damaged: {exc}") from exc


def safe_parts(name: str) -> list[str]:
    """Return the parts of a member's name; raise BundleError if it could leave the directory."""
    parts = name.rstrip("/").split("/")
    if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise BundleError(f"the bundle holds {name[:120]!r}, which is not a path inside it")
    return parts


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, directory: str) -> None:
    # orig_filename: zipfile truncates filename at the first NUL.
    path = os.path.join(directory, *safe_parts(member.orig_filename))
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise BundleError(f"the bundle holds {member.filename[:120]!r}, which is not a plain file")
    if member.is_dir():
        make_directories(path)
        return
    make_directories(os.path.dirname(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 | mode & 0o100)
    except FileExistsError:
        raise BundleError(f"the bundle holds {member.filename[:120]!r} twice") from None
    with archive.open(member) as source, os.fdopen(descriptor, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 18)
