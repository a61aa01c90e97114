"""Findings on access lists and token renewal for settings that the tests' clusters do not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.doctor import DoctorContext, Finding, Status, authorization, kerberos
from submarine_jobs.errors import AclsDisabledError
from submarine_jobs.model import Profile
from submarine_runtime.cluster_http import Access, Answer, HttpClient, NoAnswerError

PRIVILEGES = "yarn.resourcemanager.proxy-user-privileges.enabled"


class Storage:
    def acl(self, path: str) -> None:
        raise AclsDisabledError("HDFS keeps no ACLs (dfs.namenode.acls.enabled is false)")


def context(settings: dict[str, str], *, queue: str | None = None, **lists: str) -> DoctorContext:
    """A cluster with Kerberos, with these settings of the ResourceManager and lists of queues."""
    conf = SimpleNamespace(
        kerberos=True,
        token_lifetime=7200.0,
        resourcemanager_user="yarn",
        gateway="",
        webhdfs=["https://namenode:9871"],
        get=lambda name, default="": default,
    )
    leaves = [
        {"queueName": name, "queuePath": f"root.{name}", "queueAcls": acls(text)}
        for name, text in lists.items()
    ]
    root = {"queueName": "root", "queueAcls": acls(" "), "queues": {"queue": leaves}}
    yarn: Any = SimpleNamespace(
        conf=conf,
        user="alice",
        rm=SimpleNamespace(
            setting=settings.get,
            get=lambda path: {"scheduler": {"schedulerInfo": root}},
        ),
        identity=SimpleNamespace(file_system_access=Access()),
        renews_expired_tokens=lambda: settings.get(PRIVILEGES) == "true",
        job_root=lambda: (Storage(), "/user/alice/submarine"),
    )
    made = DoctorContext(Profile(backend="yarn", queue=queue), {})
    made._yarn = yarn
    return made


def acls(submit: str) -> dict[str, Any]:
    return {
        "queueAcl": [
            {"accessType": "SUBMIT_APP", "accessControlList": submit},
            {"accessType": "ADMINISTER_QUEUE", "accessControlList": " "},
        ]
    }


def test_a_cluster_without_access_lists() -> None:
    found = authorization.yarn_acls(context({"yarn.acl.enable": "false"}))
    assert found.status is Status.WARNING
    assert "(yarn.acl.enable is false): each user can view and end the jobs" in found.sentence
    assert found.fix.startswith("Operators: set yarn.acl.enable to true")
    # The ResourceManager does not show it: Hadoop's default.
    assert authorization.yarn_acls(context({})).status is Status.WARNING
    assert authorization.queue_access(context({}, default="bob ")).status is Status.SKIPPED
    files = authorization.hdfs_acls(context({}))
    assert files.status is Status.WARNING
    assert "(dfs.namenode.acls.enabled is false), so --share does not let others" in files.sentence
    assert files.fix.startswith("Operators: set dfs.namenode.acls.enabled to true")


@pytest.mark.parametrize(
    ("queue", "lists", "status", "fix"),
    [
        (None, {"default": "alice "}, Status.OK, ""),
        (None, {"default": " analysts"}, Status.OK, ""),
        ("ml", {"ml": "bob ", "free": "*"}, Status.ERROR, "Choose one of free "),
        ("ml", {"ml": "bob "}, Status.ERROR, "add alice to yarn.scheduler.capacity.root.ml.acl_"),
        ("gone", {"ml": "bob "}, Status.SKIPPED, ""),
    ],
)
def test_the_access_list_of_a_queue(
    queue: str | None, lists: dict[str, str], status: Status, fix: str
) -> None:
    seen = context({"yarn.acl.enable": "true"}, queue=queue, **lists)
    found = authorization.queue_access(seen)
    assert found.status is status, found
    assert fix in found.fix


@pytest.mark.parametrize(
    ("settings", "answer", "status", "part"),
    [
        ({}, 404, Status.OK, "starts no further containers of it"),
        ({PRIVILEGES: "true"}, 200, Status.OK, "YARN obtains new tokens to start containers"),
        ({PRIVILEGES: "true"}, 403, Status.OK, "YARN obtains new tokens to start containers"),
        ({PRIVILEGES: "true"}, None, Status.OK, "YARN obtains new tokens to start containers"),
        ({PRIVILEGES: "true"}, 404, Status.WARNING, "(hadoop.proxyuser.yarn.hosts is not set)"),
    ],
)
def test_token_renewal(
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    answer: int | None,
    status: Status,
    part: str,
) -> None:
    def request(*args: object, **more: object) -> Answer:
        if answer is None:
            raise NoAnswerError("namenode:9871", "refused")
        return Answer(answer, {}, b"")

    monkeypatch.setattr(HttpClient, "request", request)
    found: Finding = kerberos.token_renewal(context(settings))
    assert found.status is status
    assert part in found.sentence
    assert bool(found.fix) is (status is Status.WARNING)


def test_an_httpfs_gateway_is_not_asked_for_the_namenodes_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HttpClient, "request", lambda *_, **__: Answer(404, {}, b""))
    made = context({PRIVILEGES: "true"})
    monkeypatch.setattr(made.conf, "gateway", "https://gateway:14000")
    assert kerberos.token_renewal(made).status is Status.OK
