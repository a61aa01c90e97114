"""``--share`` in the specification of an application, and the warnings of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.backends.yarn.application.specification import Application, Master, Resources
from submarine_jobs.errors import AclsDisabledError, UsageError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.storage import Acl, LocalStorage
from submarine_runtime.yarn import import_skein

SHARE = ("view:bob", "view:@analysts", "modify:carol")


def skeins_acls(share: tuple[str, ...], *, private: bool = False) -> Any:
    master = Master(Resources(512, 1), {}, {}, "true")
    made = Application(
        "n", "default", frozenset(), master, owner="ada", private=private, share=share
    )
    return import_skein().ApplicationSpec.from_dict(dict(made.to_json())).acls


def test_skein_sets_the_acls_of_the_names() -> None:
    acls = skeins_acls(SHARE)
    assert acls.enable
    assert (acls.view_users, acls.view_groups) == (["bob", "carol"], ["analysts"])
    assert (acls.modify_users, acls.modify_groups) == (["carol"], [])
    assert acls.ui_users == ["ada", "bob", "carol"]
    assert not skeins_acls(()).enable
    private = skeins_acls((), private=True)
    assert (private.enable, private.view_users, private.ui_users) == (True, [], ["ada"])


class Files(LocalStorage):
    """The directories of alice; without ACLs if ``enabled`` is false."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled

    def acl(self, path: str) -> Acl:
        if not self.enabled:
            raise AclsDisabledError("HDFS keeps no ACLs (dfs.namenode.acls.enabled is false)")
        if path in ("/", "/user"):
            return Acl("hdfs", 0o755)
        if path == "/user/alice":
            return Acl("alice", 0o700)
        raise FileNotFoundError(path)


class ResourceManager:
    def __init__(self, checked: str | None) -> None:
        self.checked = checked

    def setting(self, name: str) -> str | None:
        assert name == "yarn.acl.enable"
        return self.checked


class Conf:
    def get(self, key: str, default: str = "") -> str:
        return default


def warnings(checked: str | None, share: Sequence[str], *, enabled: bool = True) -> list[str]:
    backend = YarnBackend(Profile(backend="yarn", user="alice"))
    backend.__dict__.update(
        rm=ResourceManager(checked), conf=Conf(), storage=Files(enabled=enabled),
        identity=type("Identity", (), {"user": "alice"})(),
    )  # fmt: skip
    return backend._sharing_warnings(JobSpec("n", "yarn", share=tuple(share)))


def test_a_plan_names_the_directories_that_it_opens() -> None:
    (opened,) = warnings("true", SHARE)
    assert "pass through /user/alice/submarine/2" in opened
    assert opened.endswith("/user/alice/submarine, /user/alice from now on, without listing it "
                           "(an ACL entry --x).")  # fmt: skip
    assert warnings("false", ()) == []


@pytest.mark.parametrize("checked", ["false", None])
def test_a_cluster_without_acls_is_reported(checked: str | None) -> None:
    yarn, hdfs = warnings(checked, SHARE, enabled=False)
    assert yarn == (
        "YARN checks no ACLs on this cluster (yarn.acl.enable is false): each user can view this "
        "job's application and end it."
    )
    assert hdfs == (
        "HDFS keeps no ACLs (dfs.namenode.acls.enabled is false): --share does not let others "
        "read the job directory."
    )


def test_the_job_root_of_another_user() -> None:
    backend = YarnBackend(Profile(backend="yarn", user="alice"))
    backend.__dict__.update(
        storage=Files(enabled=True), identity=type("Identity", (), {"user": "alice"})()
    )
    assert backend.job_root_of("bob")[1] == "/user/bob/submarine"
    with pytest.raises(UsageError, match="is not the name of a user"):
        backend.job_root_of("..")
