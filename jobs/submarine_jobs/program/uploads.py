"""Read a program that a client has sent as a zip file.

The zip is untrusted. Its size, names and kinds of files are checked before it is unpacked, and it
is unpacked in memory only.
"""

from __future__ import annotations

import io
import stat
import sys
import zipfile
import zlib
from collections.abc import Mapping

from submarine_jobs.errors import UsageError
from submarine_jobs.program.file_names import PROGRAM
from submarine_jobs.program.job_bundle import MAX_BYTES, Bundle, check_size
from submarine_jobs.text import one_line
from submarine_runtime.protocol import SourceMap
from submarine_runtime.translation import _

#: Limits of a zip: files, bytes of its central directory, characters of a name.
MAX_FILES = 2000
MAX_DIRECTORY = 1 << 20
MAX_NAME = 400
#: The directory of a bundle that holds the source map and the notebook.
_OWN = ".submarine"
_READ_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    zlib.error,
)


def central_directory_size(data: bytes) -> int | None:
    """Return the size of the central directory of a zip, which ``zipfile`` reads as a whole.

    None: this is not a zip file, or zip64, which programs do not need.
    """
    tail = data[-(1 << 16) - 64 :]
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or b"PK\x06\x07" in tail:
        return None
    return int.from_bytes(tail[end + 12 : end + 16], "little")


def read_uploaded_zip(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip by their names, sorted.

    Raises
    ------
    UsageError
        If it is not a zip, has a path out of the program's directory, a link, a name twice, or a
        module that hides one of the standard library, or if it is too large.
    """
    size = central_directory_size(data)
    if size is None:
        raise _damaged()
    if size > MAX_DIRECTORY:
        raise _too_many()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MAX_FILES:
                raise _too_many()
            names = {_checked_name(member): member for member in members if not member.is_dir()}
            for folder in (member for member in members if member.is_dir()):
                _checked_name(folder)
            if len(names) < sum(not member.is_dir() for member in members):
                raise UsageError(_("The bundle has a file twice."), _("Zip the program again."))
            _check_folders(names)
            _check_modules(names)
            return _contents(archive, names)
    except _READ_ERRORS:
        raise _damaged() from None


def uploaded_bundle(
    files: Mapping[str, bytes], program: str | None, *, has_command: bool
) -> Bundle:
    """Return the bundle of uploaded files.

    Parameters
    ----------
    program
        The file to run. None: ``main.py``, or the only Python file at the root.
    has_command
        Whether the tasks run a command, so that no program is necessary.

    Raises
    ------
    UsageError
        If the file does not exist, is not a Python file, or cannot be determined.
    """
    if program is None:
        scripts = [name for name in files if name.endswith(".py") and "/" not in name]
        if PROGRAM in files or len(scripts) == 1:
            program = PROGRAM if PROGRAM in files else scripts[0]
        elif has_command and files:
            program = min(files)
        else:
            raise UsageError(
                _("The bundle has {count} Python files at its root, and none is main.py.").format(
                    count=len(scripts)
                ),
                _("Name the one to run with the option program."),
            )
    if program not in files:
        raise UsageError(
            _("The bundle has no file {name}.").format(name=one_line(program, 80)),
            _("program names a file of the bundle, such as train.py or pkg/train.py."),
        )
    if not program.endswith(".py") and not has_command:
        raise UsageError(
            _("The program {name} is not a Python file.").format(name=one_line(program, 80)),
            _("Name a file that ends in .py, or give worker_launch_cmd."),
        )
    return Bundle(program, dict(files), SourceMap({}))


def _checked_name(member: zipfile.ZipInfo) -> str:
    name = member.orig_filename  # zipfile truncates filename at the first NUL.
    shown = one_line(name, 80)
    parts = name.rstrip("/").split("/")
    drive = len(name) > 1 and name[1] == ":"
    if "\\" in name or drive or any(part in ("", ".", "..") for part in parts):
        raise UsageError(
            _("The bundle has {name}, a path out of the program's directory.").format(name=shown),
            _("Zip the files with paths relative to the program's directory."),
        )
    if len(name) > MAX_NAME or not name.isprintable() or max(map(_length, parts)) > 255:
        raise UsageError(
            _("The bundle has {name}, which is too long or has control characters.").format(
                name=shown
            ),
            _("Rename the file."),
        )
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UsageError(
            _("The bundle has {name}, which is a link or a device.").format(name=shown),
            _("Zip the file itself."),
        )
    if member.flag_bits & 1:
        raise UsageError(
            _("The bundle has {name}, which is encrypted.").format(name=shown),
            _("Zip it without a password."),
        )
    if parts[0] == _OWN:
        raise UsageError(
            _("The bundle has {name}, and {own}/ is reserved for Submarine.").format(
                name=shown, own=_OWN
            ),
            _("Leave that directory out."),
        )
    return name


def _length(part: str) -> int:
    return len(part.encode("utf-8", "replace"))


def _check_folders(names: Mapping[str, object]) -> None:
    """Refuse a name that is both a file and a directory."""
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            if "/".join(parts[:depth]) in names:
                raise UsageError(
                    _("The bundle has {name} below a file of that name.").format(
                        name=one_line(name, 80)
                    ),
                    _("Rename one of them."),
                )


def _check_modules(names: Mapping[str, object]) -> None:
    """Refuse modules that would hide one of the standard library or of Submarine."""
    for name in names:
        top = name.partition("/")[0].removesuffix(".py")
        if name.endswith(".py") and (top in sys.stdlib_module_names or top == "submarine_runtime"):
            raise UsageError(
                _("{name} of the bundle hides the module {top} of Python or Submarine.").format(
                    name=one_line(name, 80), top=top
                ),
                _("Rename it."),
            )


def _contents(archive: zipfile.ZipFile, names: Mapping[str, zipfile.ZipInfo]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    remaining = MAX_BYTES + 1
    for name, member in sorted(names.items()):
        with archive.open(member) as file:
            # The size in the directory may be wrong: read no more than the limit.
            found[name] = file.read(remaining)
        remaining -= len(found[name])
        check_size(found)
    return found


def _damaged() -> UsageError:
    return UsageError(
        _("The bundle is not a zip file, or is damaged."), _("Send the zip of the program's files.")
    )


def _too_many() -> UsageError:
    return UsageError(
        _("The bundle has more than {max_files} files.").format(max_files=MAX_FILES),
        _("Send data with --input or --localization."),
    )
