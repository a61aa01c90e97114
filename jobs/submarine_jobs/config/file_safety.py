"""Check that other users cannot change or read a file, and create private directories.

Used for files that name programs or addresses, and for files with passwords. The checks use owner
and mode of the file and of its directory, not its content.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from submarine_runtime.translation import _

_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class UnsafeFile:
    """Reason to reject a file.

    Attributes
    ----------
    reason
        A clause whose subject is the file: ``can be changed by every user (mode 0666)``.
    fix
        The fix, with the command.
    """

    reason: str
    fix: str


def make_private(directory: Path) -> None:
    """Create a directory and its missing parents, accessible only for this user.

    ``Path.mkdir`` sets its mode only for the last directory. Existing directories are unchanged.
    """
    for one in (*reversed(directory.parents), directory):
        # `exist_ok` alone is not enough: an existing root directory may be read-only.
        if not one.is_dir():
            one.mkdir(mode=0o700, exist_ok=True)


def check_file(path: Path, status: os.stat_result, *, foreign: bool = False) -> UnsafeFile | None:
    """Return why users other than this one can change ``path``, or None.

    Parameters
    ----------
    status
        ``fstat`` of the opened file, so that the checked file is the one that is read.
    foreign
        Accept a file of any owner, because the user names this file.

    Notes
    -----
    Files of root are accepted for every user; root accepts only its own. Group write permission is
    accepted for the private group of the owner (umask 002): it has the name of the owner, is the
    primary group of the owner and has no other member.
    """
    if not foreign and (unsafe := _of_another_user(path, status)) is not None:
        return unsafe
    if (writers := _other_writers(path, status)) is not None:
        reason = _("can be changed by {writers} (mode {mode:04o})").format(
            writers=writers, mode=stat.S_IMODE(status.st_mode)
        )
        return UnsafeFile(reason, _("Run `chmod go-w {path}`.").format(path=shlex.quote(str(path))))
    # A link and its target may be in different directories: check both.
    for directory in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
        if (unsafe := _directory(directory, foreign=foreign)) is not None:
            return unsafe
    return None


def check_site_file(
    path: Path, status: os.stat_result, owners: Collection[int]
) -> UnsafeFile | None:
    """Return why a user other than ``owners`` can change or replace ``path``, or None.

    Unlike ``check_file``, it accepts no group, not even the private one of the owner.

    Parameters
    ----------
    status
        ``fstat`` of the opened file.
    owners
        Numbers of the users that may own the file and its directory.
    """
    if (unsafe := _changeable(path, status, owners)) is not None:
        return unsafe
    for directory in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
        if (unsafe := _changeable(directory, directory.stat(), owners)) is not None:
            return unsafe
    return None


def _changeable(path: Path, status: os.stat_result, owners: Collection[int]) -> UnsafeFile | None:
    name, mode = shlex.quote(str(path)), stat.S_IMODE(status.st_mode)
    if status.st_uid not in owners:
        return UnsafeFile(
            _("{path} belongs to {user} instead of root").format(
                path=path, user=_user(status.st_uid)
            ),
            _("As root, run `chown root {name}`.").format(name=name),
        )
    # In a sticky directory, only the owner of a file, of the directory or root can replace it.
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        return UnsafeFile(
            _("{path} can be changed by its group or others (mode {mode:04o})").format(
                path=path, mode=mode
            ),
            _("As root, run `chmod go-w {name}`.").format(name=name),
        )
    return None


def check_private(path: Path, status: os.stat_result) -> UnsafeFile | None:
    """Return why users other than this one can read or change ``path``, or None."""
    if not _is_ours(status):
        return UnsafeFile(_("belongs to another user"), _("Use a file of your own."))
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        reason = _("can be read by other users (mode {mode:04o})").format(
            mode=stat.S_IMODE(status.st_mode)
        )
        return UnsafeFile(reason, _("Run `chmod 600 {path}`.").format(path=shlex.quote(str(path))))
    return None


def _directory(directory: Path, *, foreign: bool) -> UnsafeFile | None:
    try:
        status = directory.stat()
    except OSError:
        return None  # The file was opened: the directory is searchable but not readable.
    if status.st_mode & stat.S_ISVTX:
        return None  # Only the owner of a file, of this directory or root can replace the file.
    name = shlex.quote(str(directory))
    if not foreign and not _is_ours(status):
        return UnsafeFile(
            _("can be replaced by {user}, to whom {directory} belongs").format(
                user=_user(status.st_uid), directory=directory
            ),
            _("Copy the project into a directory of your own."),
        )
    if (writers := _other_writers(directory, status)) is not None:
        return UnsafeFile(
            _("can be replaced by {writers}, because {directory} has mode {mode:04o}").format(
                writers=writers, directory=directory, mode=stat.S_IMODE(status.st_mode)
            ),
            _(
                "Run `chmod go-w {name}`, or `chmod +t {name}` where several people work in it."
            ).format(name=name),
        )
    return None


def _of_another_user(path: Path, status: os.stat_result) -> UnsafeFile | None:
    if _is_ours(status):
        return None
    name = shlex.quote(str(path))
    return UnsafeFile(
        _("belongs to {user}").format(user=_user(status.st_uid)),
        _(
            "Read it; then use it as your own file (`SUBMARINE_CONFIG={name}`), or put a {file} "
            "of your own, which may be empty, into the directory where you work."
        ).format(name=name, file=path.name),
    )


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (os.getuid(), 0)


def _other_writers(path: Path, status: os.stat_result) -> str | None:
    """Return a description of other users with write permission; None if there are none."""
    if status.st_mode & stat.S_IWOTH:
        return _("every user")
    if status.st_mode & stat.S_IWGRP and not (_is_private_group(status) and not _has_acl(path)):
        return _("the group {group}").format(group=_group(status.st_gid))
    return None


def _is_private_group(status: os.stat_result) -> bool:
    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    alone = all(member == owner.pw_name for member in group.gr_mem)
    return owner.pw_gid == status.st_gid and group.gr_name == owner.pw_name and alone


def _has_acl(path: Path) -> bool:
    """Whether the file has an ACL, so that the group bits apply to more users."""
    try:
        return bool(os.getxattr(path, _ACL))
    except OSError:
        return False


def _user(uid: int) -> str:
    try:
        return _("the user {name}").format(name=pwd.getpwuid(uid).pw_name)
    except KeyError:
        return _("the user with the number {uid}").format(uid=uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
