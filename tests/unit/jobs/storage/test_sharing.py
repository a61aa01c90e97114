"""The ACL entries of a shared job directory and of the directories above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from submarine_jobs.errors import AclsDisabledError, StorageError
from submarine_jobs.model import Sharing
from submarine_jobs.storage import Acl, LocalStorage, mark_modifiers, share_directory, traversal
from submarine_jobs.storage.client_calls import storage_error

JOB = "/user/alice/submarine/202611/j"
SHARING = Sharing.of(["view:bob", "view:@analysts", "modify:carol"])
EXECUTE = ["user:bob:--x", "user:carol:--x", "group:analysts:--x", "mask::--x"]


class Acls(LocalStorage):
    """Records changes of ACLs; a directory that is not given does not exist."""

    def __init__(self, **above: Acl) -> None:
        self.found = {
            "/": Acl("hdfs", 0o755),
            "/user": Acl("hdfs", 0o755),
            JOB: Acl("alice", 0o750),
        }
        self.found.update({path.replace("_", "/"): acl for path, acl in above.items()})
        self.changes: dict[str, tuple[bool, list[str]]] = {}

    def acl(self, path: str) -> Acl:
        if path not in self.found:
            raise FileNotFoundError(path)
        return self.found[path]

    def set_acl(self, path: str, entries: Sequence[str], *, replace: bool) -> None:
        self.changes[path] = (replace, list(entries))


def added(**above: Acl) -> dict[str, list[str]]:
    return traversal(Acls(**above), JOB, SHARING, "alice").added


def test_each_closed_directory_gets_entries_that_only_pass_through() -> None:
    home = Acl("alice", 0o700)
    expected = [f"/user/alice{rest}" for rest in ("/submarine/202611", "/submarine", "")]
    assert added(_user_alice=home) == dict.fromkeys(expected, EXECUTE)


def test_an_open_directory_is_not_changed() -> None:
    assert "/user/alice" not in added(_user_alice=Acl("alice", 0o711))
    given = ("user:bob:r-x", "user:carol:--x", "group:analysts:--x")
    assert "/user/alice" not in added(_user_alice=Acl("alice", 0o750, given))


@pytest.mark.parametrize(
    ("mode", "given", "entries"),
    [
        # Rights that an entry has stay.
        (0o750, ("user:bob:r--",), ["user:bob:r-x", *EXECUTE[1:3], "mask::r-x"]),
        # Entries that the mask disables do not become effective.
        (0o700, ("user:eve:rwx", "user:bob:--x"), EXECUTE),
        (0o770, (), [*EXECUTE[:3], "mask::rwx"]),
    ],
)
def test_the_mask_is_extended_by_passing_only(
    mode: int, given: tuple[str, ...], entries: list[str]
) -> None:
    assert added(_user_alice=Acl("alice", mode, given))["/user/alice"] == entries


def test_directories_of_others_are_reported() -> None:
    found = traversal(Acls(_user_alice=Acl("root", 0o700)), JOB, SHARING, "alice")
    assert found.closed == ["/user/alice"]
    warning = found.sentences("alice")[1]
    assert warning.startswith("/user/alice does not belong to alice: unless these users")


def test_the_acl_of_the_job_directory_replaces_an_inherited_one() -> None:
    storage = Acls(_user_alice=Acl("alice", 0o700))
    share_directory(storage, JOB, SHARING)
    replace, entries = storage.changes.pop(JOB)
    readers = ["user:bob:r-x", "user:carol:r-x", "group:analysts:r-x"]
    access = ["user::rwx", "group::---", "other::---", "mask::r-x", *readers]
    assert replace
    assert entries == [*access, *(f"default:{entry}" for entry in access)]
    assert not any(replaced for replaced, _ in storage.changes.values())
    assert set(storage.changes) == set(added(_user_alice=Acl("alice", 0o700)))


def test_only_those_with_the_right_to_modify_may_execute_the_mark() -> None:
    storage = Acls()
    mark_modifiers(storage, "/j/spec.json", SHARING)
    _replace, entries = storage.changes["/j/spec.json"]
    assert entries[4:] == ["user:bob:r--", "user:carol:r-x", "group:analysts:r--"]
    mark_modifiers(storage, "/k/spec.json", Sharing.of(["view:bob"]))
    assert "/k/spec.json" not in storage.changes


def test_disabled_acls_have_their_own_error() -> None:
    text = (
        "HDFS refused /: The ACL operation has been rejected.  Support for ACLs has been disabled "
        "by setting dfs.namenode.acls.enabled to false."
    )
    error = storage_error("read the ACL of", "hdfs://nn/", StorageError(text))
    assert isinstance(error, AclsDisabledError)
    assert error.message == "HDFS keeps no ACLs (dfs.namenode.acls.enabled is false)"
    calls: list[Any] = [
        lambda: LocalStorage().acl("/"),
        lambda: LocalStorage().set_acl("/", [], replace=True),
    ]
    for call in calls:
        with pytest.raises(AclsDisabledError, match="file:/// has no ACLs"):
            call()
