"""A workflow of notebooks whose cells start jobs, run here; killed in the middle, no job is left.

The jobs run on the ``local`` backend.
"""

from __future__ import annotations

import signal

import nbformat
import pytest

from submarine_workflows.runs import is_held
from tests.local.workflows.workflow_runs import Training
from tests.waiting import until


@pytest.fixture
def flows(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_JOB_ROOT", str(tmp_path / "jobs"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    found = Training(tmp_path)
    yield found
    found.close()


@pytest.mark.full
def test_a_killed_runner_leaves_no_job_and_its_run_goes_on(flows):
    process, pid = flows.begin()
    process.kill()
    process.wait(60)
    flows.check_job_ended(pid)
    until(lambda: not is_held(flows.newest().guard_lock), "the keeper lives on")
    flows.file("go").touch()
    outcome = flows.do("run", "--resume", "w")
    assert outcome.exit_code == 0, outcome.text
    assert flows.file("report-0.9").exists()
    assert sorted(str(job["state"]) for job in flows.jobs()) == ["CANCELLED", "SUCCEEDED"]
    [output] = flows.newest().notebooks.iterdir()
    assert nbformat.read(output, 4).cells[-1].source.startswith("accuracy = ")
    origin = {(job["workflow"], job["workflow_run"], job["workflow_node"]) for job in flows.jobs()}
    assert origin == {("w", flows.newest().run, "train")}


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_jobs_of_its_notebooks(flows, number):
    process, pid = flows.begin()
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 128 + number
    flows.check_job_ended(pid)
    assert flows.statuses() == {"": "KILLED", "train": "KILLED", "report": "CANCELLED"}
    [output] = flows.newest().notebooks.iterdir()
    assert nbformat.read(output, 4).cells, "what was done until then is kept"
