"""Put the program's files in place: unpack the bundle, and clean or copy localized files."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from typing import Sequence

from submarine_runtime.agent.program import Ending, system_ending
from submarine_runtime.protocol import CHECKSUMMED, EndReason, layout
from submarine_runtime.storage import Scratch, make_directories
from submarine_runtime.translation import _

MAX_FILES = 100_000
MAX_BYTES = 8 << 30
#: The first bytes of a file written by Hadoop's ChecksumFileSystem.
_CHECKSUM_HEADER = b"crc\0"


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
                raise BundleError(_("the bundle holds too many or too large files"))
            for member in members:
                _extract(archive, member, directory)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as exc:
        raise BundleError(_("the bundle is damaged: {error}").format(error=exc)) from exc


def safe_parts(name: str) -> list[str]:
    """Return the parts of a member's name; raise BundleError if it could leave the directory."""
    parts = name.rstrip("/").split("/")
    if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise BundleError(
            _("the bundle holds {name!r}, which is not a path inside it").format(name=name[:120])
        )
    return parts


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, directory: str) -> None:
    # orig_filename: zipfile truncates filename at the first NUL.
    path = os.path.join(directory, *safe_parts(member.orig_filename))
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise BundleError(
            _("the bundle holds {filename!r}, which is not a plain file").format(
                filename=member.filename[:120]
            )
        )
    if member.is_dir():
        make_directories(path)
        return
    make_directories(os.path.dirname(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 | mode & 0o100)
    except FileExistsError:
        raise BundleError(
            _("the bundle holds {filename!r} twice").format(filename=member.filename[:120])
        ) from None
    with archive.open(member) as source, os.fdopen(descriptor, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 18)


def unpack_program(scratch: Scratch) -> Ending | None:
    """Unpack the bundle; return the ending if that fails."""
    try:
        scratch.make()
        if os.path.exists(scratch.path(layout.BUNDLE)):
            unpack(scratch.path(layout.BUNDLE), scratch.program)
    except BundleError as exc:
        return Ending(EndReason.LAUNCH_FAILED, f"{exc}.")
    except OSError as exc:
        return system_ending(exc)
    return None


def remove_checksum_files(root: str) -> int:
    """Remove the ``.NAME.crc`` files from directories that YARN localized; return how many remain.

    The NodeManager copies an HDFS directory to a local file system with checksums, which adds such
    a file beside each file. A user's file with such a name has no checksum header and is kept.
    """
    left = 0
    for name in os.listdir(root):
        if not name.startswith(CHECKSUMMED):
            continue
        for directory, _unused, files in os.walk(os.path.realpath(os.path.join(root, name))):
            beside = set(files)
            for file in files:
                if not (file.startswith(".") and file.endswith(".crc") and file[1:-4] in beside):
                    continue
                path = os.path.join(directory, file)
                try:
                    with open(path, "rb") as stream:
                        generated = stream.read(len(_CHECKSUM_HEADER)) == _CHECKSUM_HEADER
                    if generated:
                        os.unlink(path)
                except FileNotFoundError:
                    pass  # Removed by another task on this node.
                except OSError:
                    left += 1
    return left


def copy_writable(scratch: Scratch, targets: Sequence[str]) -> Ending | None:
    """Replace links to localised files by copies that the program may change.

    All tasks of a node share one copy, which is read-only. A target that is not a link has been
    copied already. Returns the ending if a copy fails.
    """
    for target in targets:
        path = os.path.join(scratch.program, target)
        if not os.path.islink(path):
            continue
        copy = f"{path}.copy-{os.getpid()}"
        try:
            if os.path.isdir(path):
                shutil.copytree(path, copy, symlinks=True)
            else:
                shutil.copy2(path, copy)
            make_writable(copy)
            os.unlink(path)
            os.rename(copy, path)
        except shutil.Error as exc:
            return Ending(
                EndReason.LAUNCH_FAILED,
                _("{target} could not be copied: {error}.").format(target=target, error=exc)[:500],
            )
        except OSError as exc:
            return system_ending(exc)
    return None


def make_writable(path: str) -> None:
    """Make a file, or a directory with its content, writable for the owner, without links."""
    paths = [path]
    for place, directories, files in os.walk(path):
        paths += [os.path.join(place, name) for name in [*directories, *files]]
    for each in paths:
        if not os.path.islink(each):
            os.chmod(each, os.stat(each).st_mode | stat.S_IWUSR)
