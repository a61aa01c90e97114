"""Delegation tokens of containers while the first server of a pair is the standby."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster
from submarine_runtime.kerberos import (
    TOKEN_FILE_VARIABLE,
    Token,
    container_tokens,
    namenode_access,
    resourcemanager_access,
    token_bytes,
)
from submarine_runtime.protocol import JobStore
from submarine_runtime.storage import WebHdfsStore
from submarine_runtime.yarn import ResourceManagerClient

pytestmark = [pytest.mark.cluster, pytest.mark.full]


def standby_first(cluster: Minicluster, kind: str) -> list[str]:
    """The addresses of a pair, that of the standby first."""
    active = cluster.active(kind)
    other = next(name for name in (kind, f"{kind}-2") if name != active)
    return [cluster.url(other), cluster.url(active)]


def test_a_standby_that_does_not_know_the_tokens_is_passed_over(
    both: Minicluster, ha_profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not both.saved.settings.kerberos:
        pytest.skip("without Kerberos there are no tokens")
    access = YarnBackend(ha_profile).identity.access
    namenodes = standby_first(both, "namenode")
    managers = standby_first(both, "resourcemanager")
    owner = WebHdfsStore(namenodes, "", access)
    made = owner.call("GET", "/", "GETDELEGATIONTOKEN", {"renewer": "yarn"}).json_object()
    client = ResourceManagerClient(managers, access=access, timeout=20.0)
    issued = client.request("POST", "/delegation-token", None, {"renewer": "yarn"}).json_object()
    tokens = [
        Token.from_url_string(made["Token"]["urlString"], "ha-hdfs:minicluster"),
        Token.from_url_string(issued["token"], "rm"),
    ]
    file = tmp_path / "container_tokens"
    file.write_bytes(token_bytes(tokens))
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(file))
    container_tokens.cache_clear()
    try:
        store = JobStore("webhdfs", "/user/alice", namenodes, authentication="token", ca=access.ca)
        hdfs = WebHdfsStore(namenodes, "/user/alice", namenode_access(store))
        hdfs.publish("by-token", b"x")
        assert hdfs.read("by-token") == b"x"
        rm = ResourceManagerClient(managers, access=resourcemanager_access(store), timeout=20.0)
        assert rm.query("/apps") is not None
        assert rm.url == managers[1]
    finally:
        container_tokens.cache_clear()
