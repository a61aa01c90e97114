"""Replace and create files of this machine atomically, so that no reader sees a part of one."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Callable, Union

Content = Union[bytes, Callable[[BinaryIO], object]]

#: Start of the names of incomplete files; readers of a directory skip them.
TEMPORARY_PREFIX = ".tmp-"
#: A longer name could exceed the limit of the file system with the prefix.
_MAX_NAME = 100


def temporary_name(path: str) -> str:
    """Return a unique sibling of ``path`` that readers skip."""
    directory, _, name = path.rpartition("/")
    unique = f"{TEMPORARY_PREFIX}{name[-_MAX_NAME:]}-{os.urandom(6).hex()}"
    return f"{directory}/{unique}" if directory or path.startswith("/") else unique


def write_temporary(
    path: str | os.PathLike[str], content: Content, *, mode: int | None = None, sync: bool = False
) -> str:
    """Write a new file beside ``path`` and return its path; no file remains after an error.

    Parameters
    ----------
    content
        Bytes, or a function that writes to the opened file.
    mode
        Permissions of the file. None means the default of the umask.
    sync
        Write the content to the disk before the function returns.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    temporary = temporary_name(os.fspath(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            if sync:
                file.flush()
                os.fsync(descriptor)
    except BaseException:
        remove_file(temporary)
        raise
    return temporary


def replace_file(
    path: str | os.PathLike[str], content: Content, *, mode: int | None = None, sync: bool = False
) -> None:
    """Write a new file and rename it to ``path``; see ``write_temporary``.

    A symbolic link at ``path`` is replaced, not followed.
    """
    temporary = write_temporary(path, content, mode=mode, sync=sync)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise


def remove_file(path: str) -> None:
    """Remove a file; errors are ignored."""
    try:
        os.unlink(path)
    except OSError:
        pass


def share_log(descriptor: int, directory: str) -> None:
    """Let YARN read an open file of a log directory, where the directory's mode says so.

    LinuxContainerExecutor gives log directories to the NodeManager's group (mode 2750), and sets a
    umask of 077. YARN shows and aggregates only the files that this group can read.
    """
    mode = os.stat(directory).st_mode
    if mode & stat.S_ISGID and mode & stat.S_IRGRP:
        os.fchmod(descriptor, 0o640)
