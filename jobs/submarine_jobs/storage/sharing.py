"""Share a job directory on HDFS by ACLs: read below it, traverse to it, and the right to modify it.

The default ACL of the job directory gives each new file the same entries. Their mask is the middle
digit of the mode with which the file is created: ``SHARED_FILE`` lets them read, and a file with
``PRIVATE_FILE``, such as one with a token, stays private.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from submarine_jobs.model import Sharing
from submarine_jobs.storage.base import PRIVATE_DIRECTORY, Acl, Storage
from submarine_runtime.translation import _

_EXECUTE_OTHER = 0o001


class Traversal(NamedTuple):
    """Changes that let other users reach a directory.

    Attributes
    ----------
    added
        Directory of this user, or one that does not exist yet -> entries to add to its ACL.
    closed
        Directories of other users that admit only their group, or nobody else.
    """

    added: dict[str, list[str]]
    closed: list[str]

    def sentences(self, owner: str) -> list[str]:
        """Return what a submission changes, and what it cannot change."""
        found = []
        if self.added:
            found.append(
                _(
                    "--share lets these users and groups pass through {paths} from now on, "
                    "without listing it (an ACL entry --x)."
                ).format(paths=", ".join(self.added))
            )
        if self.closed:
            found.append(
                _(
                    "{paths} does not belong to {owner}: unless these users and groups may pass "
                    "through it, its owner must admit them (hdfs dfs -setfacl -m user:NAME:--x)."
                ).format(paths=", ".join(self.closed), owner=owner)
            )
        return found


def traversal(storage: Storage, path: str, sharing: Sharing, owner: str) -> Traversal:
    """Return what must change above ``path``.

    Parameters
    ----------
    owner
        The user of the job on the file system.
    """
    result = Traversal({}, [])
    for parent in _parents(path):
        try:
            acl = storage.acl(parent)
        except FileNotFoundError:
            acl = Acl(owner, PRIVATE_DIRECTORY)
        missing = _missing(acl, _names(sharing))
        if missing and acl.owner == owner:
            result.added[parent] = missing
        elif missing:
            result.closed.append(parent)
    return result


def share_directory(storage: Storage, path: str, sharing: Sharing) -> None:
    """Set the ACL of a new job directory, and let its readers pass through those above it.

    Raises
    ------
    StorageError
        If the NameNode refuses an ACL.
    """
    entries = [*_base("rwx"), *(f"{name}:r-x" for name in _names(sharing))]
    # Replace the ACL: the directory may have inherited entries for others.
    storage.set_acl(path, [*entries, *(f"default:{entry}" for entry in entries)], replace=True)
    owner = storage.acl(path).owner
    for parent, added in traversal(storage, path, sharing, owner).added.items():
        storage.set_acl(parent, added, replace=False)


def mark_modifiers(storage: Storage, path: str, sharing: Sharing) -> None:
    """Let those with the right to modify a job execute ``path``, a file that is never executed.

    The NameNode then tells whether a user, or a group of that user, has the right.
    """
    if not (sharing.modify_users or sharing.modify_groups):
        return
    modifiers = set(_names(Sharing(sharing.modify_users, sharing.modify_groups)))
    rights = {name: "r-x" if name in modifiers else "r--" for name in _names(sharing)}
    entries = [*_base("rw-"), *(f"{name}:{right}" for name, right in rights.items())]
    storage.set_acl(path, entries, replace=True)


def _base(owner: str) -> list[str]:
    return [f"user::{owner}", "group::---", "other::---", "mask::r-x"]


def _names(sharing: Sharing) -> list[str]:
    """Return the names of all readers in the form of an ACL."""
    users = [f"user:{name}" for name in sharing.view_users]
    return users + [f"group:{name}" for name in sharing.view_groups]


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = posixpath.dirname(path)
        yield path


def _missing(acl: Acl, names: Sequence[str]) -> list[str]:
    """Return the entries that let ``names`` pass through a directory, if they may not already."""
    if acl.mode & _EXECUTE_OTHER:
        return []
    granted = {entry.rpartition(":")[0]: entry[-3:] for entry in acl.entries}
    mask = acl.mode >> 3 & 0o7
    if mask & 1 and all(granted.get(name, "").endswith("x") for name in names):
        return []
    # Keep the mask: without an entry for it, the NameNode would extend it to all entries.
    kept = "".join(letter if mask & bit else "-" for letter, bit in (("r", 4), ("w", 2)))
    # An entry that exists keeps its other rights.
    added = [f"{name}:{granted.get(name, '---')[:2]}x" for name in names]
    return [*added, f"mask::{kept}x"]
