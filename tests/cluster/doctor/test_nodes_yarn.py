"""``submarine doctor --nodes`` on the shared cluster: a row for its node, and refusals."""

from __future__ import annotations

import re

import pytest

from submarine_jobs.client import Session
from submarine_jobs.commands import execute
from submarine_jobs.errors import UsageError
from tests.cluster.conftest import Shell

pytestmark = pytest.mark.cluster


def test_a_table_with_the_node_of_the_cluster(shell: Shell, session: Session) -> None:
    outcome = execute(["doctor", "--nodes"], shell)
    header, row = outcome.text.splitlines()[:2]
    for column in ("Python", "GPUs", "driver", "disk", "clock", "DNS", "ports", "Docker"):
        assert column in header
    assert re.match(r"localhost:\d+ +3\.\d+\.\d+ ", row), outcome.text
    [found] = outcome.value["nodes"]
    report = found["report"]
    assert report["ports"]["closed"] == {}
    assert report["ports"]["count"] >= 4, "ResourceManager, NameNode twice, NodeManager"
    assert abs(report["clock"]["ahead"]) < 5
    assert report["names"]["address"] == "127.0.0.1"
    assert report["network"]["own"]
    assert "1 of 1 running node probed" in outcome.text
    newest = next(one for one in session.jobs(limit=20) if one.name == "doctor")
    assert newest.state.value == "SUCCEEDED"


def test_an_unknown_node_runs_nothing(shell: Shell, session: Session) -> None:
    before = {one.job_id for one in session.jobs(limit=100)}
    with pytest.raises(UsageError) as caught:
        execute(["doctor", "--node-list", "nowhere"], shell)
    assert str(caught.value) == "There is no running node nowhere. Running nodes are localhost."
    outcome = execute(["doctor", "--all"], shell)
    assert "Nothing was run" in outcome.text
    assert {one.job_id for one in session.jobs(limit=100)} == before
