"""Whether a file can be changed by users other than the one that acts on its content.

Used for files that name programs or addresses, and for files that hold passwords. Looks at owner
and mode of the file and of the directory that holds it; does not read the content. Makes the
directories in which this user's own files are.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class Unsafe:
    """Why a file is refused.

    Attributes
    ----------
    reason
        A clause whose subject is the file: ``can be changed by every user (mode 0666)``.
    fix
        What makes it safe, with the command.
    """

    reason: str
    fix: str


def make_private(directory: Path) -> None:
    """Make a directory for this user alone, and each missing one above it likewise.

    ``Path.mkdir`` gives its mode to the last directory only. What exists stays as it is.
    """
    for one in (*reversed(directory.parents), directory):
        # Not `exist_ok` for each: a root directory may be read-only, and exists.
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)


def check_file(path: Path, seen: os.stat_result, *, foreign: bool = False) -> Unsafe | None:
    """Return why users other than this one can change ``path``, or None.

    Parameters
    ----------
    seen
        ``fstat`` of the opened file, so that the file that is checked is the one that is read.
    foreign
        Accept a file of any owner: the user has named this very file.

    Notes
    -----
    Every user accepts the files of root; root accepts no others. A group may write where it is the
    private group of the owner, as under umask 002: it has the owner's name, is the owner's primary
    group and has no other member.
    """
    if not foreign and (unsafe := _of_another_user(path, seen)) is not None:
        return unsafe
    if (writers := _other_writers(path, seen)) is not None:
        reason = f"can be changed by {writers} (mode {stat.S_IMODE(seen.st_mode):04o})"
        return Unsafe(reason, f"Run `chmod go-w {shlex.quote(str(path))}`.")
    # A link may lie in one directory and lead into another: who can replace either decides.
    for directory in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
        if (unsafe := _directory(directory, foreign=foreign)) is not None:
            return unsafe
    return None


def check_private(path: Path, seen: os.stat_result) -> Unsafe | None:
    """Return why users other than this one can read or change ``path``, or None."""
    if not _is_ours(seen):
        return Unsafe("belongs to another user", "Use a file of your own.")
    if seen.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        reason = f"can be read by other users (mode {stat.S_IMODE(seen.st_mode):04o})"
        return Unsafe(reason, f"Run `chmod 600 {shlex.quote(str(path))}`.")
    return None


def _directory(directory: Path, *, foreign: bool) -> Unsafe | None:
    try:
        seen = directory.stat()
    except OSError:
        return None  # The file could be opened: the directory can be entered and not be read.
    if seen.st_mode & stat.S_ISVTX:
        return None  # Only the owner of a file, of this directory or root can replace the file.
    name = shlex.quote(str(directory))
    if not foreign and not _is_ours(seen):
        return Unsafe(
            f"can be replaced by {_user(seen.st_uid)}, to whom {directory} belongs",
            "Copy the project into a directory of your own.",
        )
    if (writers := _other_writers(directory, seen)) is not None:
        return Unsafe(
            f"can be replaced by {writers}, because {directory} has mode "
            f"{stat.S_IMODE(seen.st_mode):04o}",
            f"Run `chmod go-w {name}`, or `chmod +t {name}` where several people work in it.",
        )
    return None


def _of_another_user(path: Path, seen: os.stat_result) -> Unsafe | None:
    if _is_ours(seen):
        return None
    name = shlex.quote(str(path))
    return Unsafe(
        f"belongs to {_user(seen.st_uid)}",
        f"Read it; then use it as your own file (`SUBMARINE_CONFIG={name}`), or put a "
        f"{path.name} of your own, which may be empty, into the directory where you work.",
    )


def _is_ours(seen: os.stat_result) -> bool:
    return seen.st_uid in (os.getuid(), 0)


def _other_writers(path: Path, seen: os.stat_result) -> str | None:
    """Return the other users that can write, in words; None: there are none."""
    if seen.st_mode & stat.S_IWOTH:
        return "every user"
    if seen.st_mode & stat.S_IWGRP and not (_is_private_group(seen) and not _has_acl(path)):
        return f"the group {_group(seen.st_gid)}"
    return None


def _is_private_group(seen: os.stat_result) -> bool:
    try:
        owner, group = pwd.getpwuid(seen.st_uid), grp.getgrgid(seen.st_gid)
    except KeyError:
        return False
    alone = all(member == owner.pw_name for member in group.gr_mem)
    return owner.pw_gid == seen.st_gid and group.gr_name == owner.pw_name and alone


def _has_acl(path: Path) -> bool:
    """Whether the group's bits stand for further users, as they do where a file has an ACL."""
    try:
        return bool(os.getxattr(path, _ACL))
    except OSError:
        return False


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user with the number {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
