"""A workflow of notebooks whose cells start jobs, run here; killed in the middle, no job is left.

The jobs run on the ``local`` backend.
"""

from __future__ import annotations

import signal
import subprocess

import nbformat
import pytest
from tests.local.workflow_rig import Workflows, is_gone, until

from submarine_workflows.local.journal import is_held

CELLS = (
    "%load_ext submarine_magics",
    "days = 1",
    """\
%%submarine --only
import os, time
from pathlib import Path
folder = Path(os.environ["SUBMARINE_PARAM_FOLDER"])
(folder / "pid.new").write_text(str(os.getpid()))
(folder / "pid.new").rename(folder / "pid")
while not (folder / "go").exists():
    time.sleep(0.1)
print("trained")
""",
    "%submarine run training --memory 256M --param folder=$folder",
    "%submarine wait",
    "accuracy = 0.5 + days / 10",
)
FLOW = """
config: {days: "4"}
nodes:
  - name: train
    notebook: train.ipynb
    params: {days: "${days}", folder: "${folder}"}
  - name: report
    type: command
    dependsOn: [train]
    condition: ${train:accuracy} > 0.85
    config: {command: "touch report-${accuracy}"}
"""


@pytest.fixture
def flows(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_JOB_ROOT", str(tmp_path / "jobs"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    found = Workflows(tmp_path)
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[1].metadata["tags"] = ["parameters"]
    document = nbformat.v4.new_notebook(cells=cells)
    document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(document, tmp_path / "train.ipynb")
    found.write(FLOW)
    yield found
    found.file("go").touch()
    found.close()


def begun(flows: Workflows) -> tuple[subprocess.Popen[str], int]:
    process = flows.spawn("w.flow", "-p", "folder", str(flows.folder))
    until(lambda: flows.file("pid").exists() or process.poll() is not None, "no job has begun")
    assert flows.file("pid").exists(), process.communicate()[0]
    return process, int(flows.file("pid").read_text())


def jobs(flows: Workflows) -> list[dict[str, object]]:
    """The records of all jobs, as the command line sees them."""
    from submarine_jobs.commands import execute

    found = execute(["list", "--json"], flows.mouth).value
    assert isinstance(found, list)
    return found


def check_ended(flows: Workflows, pid: int) -> None:
    until(lambda: is_gone(pid), "the job's program lives on")
    until(lambda: {job["state"] for job in jobs(flows)} == {"CANCELLED"}, f"{jobs(flows)}")


def test_a_killed_runner_leaves_no_job_and_its_run_goes_on(flows):
    process, pid = begun(flows)
    process.kill()
    process.wait(60)
    check_ended(flows, pid)
    until(lambda: not is_held(flows.newest().keeper_lock), "the keeper lives on")
    flows.file("go").touch()
    outcome = flows.do("run", "--resume", "w")
    assert outcome.exit_code == 0, outcome.text
    assert flows.file("report-0.9").exists()
    assert sorted(str(job["state"]) for job in jobs(flows)) == ["CANCELLED", "SUCCEEDED"]
    [output] = flows.newest().notebooks.iterdir()
    assert nbformat.read(output, 4).cells[-1].source == CELLS[-1]
    origin = {(job["workflow"], job["workflow_run"], job["workflow_node"]) for job in jobs(flows)}
    assert origin == {("w", flows.newest().run, "train")}


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_jobs_of_its_notebooks(flows, number):
    process, pid = begun(flows)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 128 + number
    check_ended(flows, pid)
    assert flows.statuses() == {"": "KILLED", "train": "KILLED", "report": "CANCELLED"}
    [output] = flows.newest().notebooks.iterdir()
    assert nbformat.read(output, 4).cells, "what was done until then is kept"
