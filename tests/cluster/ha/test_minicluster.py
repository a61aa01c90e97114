"""The minicluster with high availability: failover, repair, and the commands of administrators."""

from __future__ import annotations

import os
import subprocess

import pytest

from submarine_minicluster import Minicluster, MiniclusterError

pytestmark = [pytest.mark.cluster, pytest.mark.full]


def states(cluster: Minicluster, *words: str) -> list[str]:
    """The states of a pair, as Hadoop's command prints them to an administrator."""
    user = "hdfs" if cluster.saved.settings.kerberos else None
    environ = {**os.environ, "HADOOP_USER_NAME": "hdfs", **cluster.environ(user)}
    done = subprocess.run(
        [*words, "-getAllServiceState"], env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [line.split()[-1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("kind", "command"),
    [("namenode", ("hdfs", "haadmin")), ("resourcemanager", ("yarn", "rmadmin"))],
)
def test_failover_and_repair(both: Minicluster, kind: str, command: tuple[str, str]) -> None:
    before = both.active(kind)
    after = both.fail_over(kind)
    assert {before, after} == {kind, f"{kind}-2"}
    assert both.active(kind) == after
    assert [one.name for one in both.status().daemons if not one.running] == [before]
    with pytest.raises(MiniclusterError, match=f"No standby {kind} of minicluster .* answers"):
        both.fail_over(kind)
    assert both.start().state == "running"
    assert both.active(kind) == after
    expected = ["active", "standby"] if after == kind else ["standby", "active"]
    assert states(both, *command) == expected
