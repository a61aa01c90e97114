"""Azkaban's ways to the YARN applications of a flow: by its tags, and by the ids in its logs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.client import Session
from submarine_jobs.commands import execute
from submarine_jobs.frontends import Outcome
from submarine_jobs.model import Profile
from submarine_runtime.protocol import State
from tests.azkaban import server as servers
from tests.cluster.conftest import Shell
from tests.waiting import until

pytestmark = pytest.mark.cluster

#: ``HadoopJobUtils.findApplicationIdFromLog``: of each line, each word that begins so.
APPLICATION = re.compile(r"^(application_\d+_\d+).*")
FLOW = """\
nodes:
  - name: single
    type: command
    config: {command: submarine run fit.py --name single --memory 256M --wait}
  - name: gang
    type: command
    config: {command: submarine run fit.py --name gang --memory 256M --worker 2 --wait}
"""


@pytest.fixture
def azkaban(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[servers.Azkaban]:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SUBMARINE_AZKABAN_USER", "alice")
    monkeypatch.setenv("SUBMARINE_AZKABAN_PASSWORD", "correct horse")
    with servers.running(tmp_path / "azkaban") as running:
        monkeypatch.setenv("SUBMARINE_AZKABAN_URL", running.url)
        yield running


def test_a_kill_by_tag_ends_single_and_gang_jobs(
    azkaban: servers.Azkaban, shell: Shell, yarn_profile: Profile, tmp_path: Path
) -> None:
    (tmp_path / "fit.py").write_text("import time\nprint('fits', flush=True)\ntime.sleep(900)\n")
    (tmp_path / "two.flow").write_text(FLOW)
    backend = YarnBackend(yarn_profile)

    def do(*words: str) -> Outcome:
        return execute(["workflow", *words], shell)

    run = do("submit", "two.flow", "--run").value["run"]
    execid = run.removeprefix("azkaban:")

    def tagged() -> set[str]:
        # As ``YarnUtils.getAllAliveAppIDsByExecID`` asks.
        answer = backend.rm.get(
            "/apps", applicationTags=f"azkaban.flow.execid:{execid}", states="ACCEPTED,RUNNING"
        )
        return {app["id"] for app in ((answer or {}).get("apps") or {}).get("app") or []}

    def named() -> set[str]:
        words = do("logs", run).text.split()
        return {match[1] for word in words if (match := APPLICATION.match(word))}

    def both() -> set[str]:
        assert not azkaban.executions[int(execid)].over, do("logs", run).text
        found = tagged()
        return found if len(found) == 2 else set()

    found = until(both, lambda: do("logs", run).text)
    until(lambda: named() == found, lambda: do("logs", run).text)
    session = Session(yarn_profile)
    jobs = {job.job_id: session.job(job.job_id) for job in session.jobs()}
    mine = [job for job in jobs.values() if job.record().application_id in found]
    assert {job.record().workflow_run for job in mine} == {run}
    for one in found:
        assert backend.rm.kill(one, "Azkaban")
    assert azkaban.executions[int(execid)].wait(180)
    statuses = {node["path"]: node["status"] for node in do("status", run).value["nodes"]}
    assert statuses == {"single": "FAILED", "gang": "FAILED"}
    for job in mine:
        assert job.wait(timeout=120).state in (State.CANCELLED, State.FAILED)
    assert tagged() == set()
