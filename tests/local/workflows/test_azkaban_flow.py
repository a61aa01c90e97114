"""A workflow of notebooks goes the whole way on an Azkaban: project, upload, run, logs, kill.

The server and the executor are those of ``tests.azkaban``; the jobs run on the ``local`` backend.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.frontends import Outcome
from submarine_jobs.model import Profile
from submarine_runtime.protocol import State
from tests.azkaban import server as servers
from tests.azkaban.executor import Execution
from tests.frontends import RecordingFrontend
from tests.local.workflows.workflow_runs import WAITING_CELL
from tests.notebooks import write_notebook
from tests.processes import is_gone
from tests.waiting import until

JOB = (
    "%load_ext submarine_magics",
    WAITING_CELL,
    "%submarine run training --memory 256M --param folder=$folder",
    "%submarine wait",
    "accuracy = 0.5 + rows / 10",
)
FLOW = """
config: {rows: "4", folder: "/nowhere", note: "", failure.emails: ops@example.org}
nodes:
  - {name: data, type: noop, needs: "{folder}/_SUCCESS"}
  - name: train
    notebook: train.ipynb
    params: {rows: "${rows}", folder: "${folder}", note: "${note}"}
    dependsOn: [data]
  - name: inner
    type: flow
    dependsOn: [train]
    condition: all_success && ${train:accuracy} >= 0.9
    nodes:
      - name: report
        type: command
        config:
          command: sh report.sh 'of ${rows} rows' grüße
          retries: "1"
  - name: never
    type: command
    dependsOn: [train]
    condition: ${train:accuracy} > 0.95
    config: {command: sh report.sh never}
  - {name: last, type: noop, dependsOn: [inner, never], condition: one_success}
"""
#: As options it would start no job, in a queue that does not exist.
NOTE = "it's' --dry-run --job queue=none --job 'x"
REPORT = """\
echo "report $1 $2, with ${SUBMARINE_WORKFLOW_NODE} of ${SUBMARINE_WORKFLOW_RUN}"
test -e tried || { touch tried; exit 3; }
"""


@pytest.fixture
def azkaban(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Azkaban]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_JOB_ROOT", str(tmp_path / "jobs"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SUBMARINE_AZKABAN_USER", "alice")
    monkeypatch.setenv("SUBMARINE_AZKABAN_PASSWORD", "correct horse")
    with servers.running(tmp_path / "azkaban") as running:
        monkeypatch.setenv("SUBMARINE_AZKABAN_URL", running.url)
        yield running


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "report.sh").write_text(REPORT)
    write_notebook(folder / "train.ipynb", ("rows = 1", ["parameters"]), *JOB)
    file = folder / "nightly.flow"
    file.write_text(FLOW)
    return file


def do(*words: str) -> Outcome:
    return execute(["workflow", *words], RecordingFrontend())


def submitted(nightly: Path, folder: Path) -> str:
    given = ("-p", "folder", str(folder), "-p", "note", NOTE)
    done = do("submit", str(nightly), "--to", "azkaban", "--run", *given)
    assert f"Running as {done.value['run']}: " in done.text
    return str(done.value["run"])


def execution_of(azkaban: servers.Azkaban, run: str) -> Execution:
    return azkaban.executions[int(run.removeprefix("azkaban:"))]


def the_job(folder: Path) -> Job:
    session = Session(Profile(backend="local", state_dir=folder / "state"))
    (record,) = session.jobs()
    return session.job(record.job_id)


def test_a_run_from_the_notebook_to_its_last_node(
    azkaban: servers.Azkaban, nightly: Path, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    run = submitted(nightly, tmp_path)
    assert do("status", run).value["nodes"][0]["path"] == "data"
    (tmp_path / "_SUCCESS").touch()
    execution = execution_of(azkaban, run)
    assert execution.wait(180)
    seen = do("status", run)
    logs = do("logs", run).text
    statuses = {node["path"]: node["status"] for node in seen.value["nodes"]}
    assert statuses == {
        "data": "SUCCEEDED", "train": "SUCCEEDED", "inner": "SUCCEEDED",
        "inner:report": "SUCCEEDED", "never": "CANCELLED", "last": "SUCCEEDED",
    }, logs  # fmt: skip
    assert seen.value["status"] == "SUCCEEDED"
    assert "inner:report  SUCCEEDED" in seen.text
    # The retry has a log of its own, and what was said by both is to be had.
    said = f"report of 4 rows grüße, with inner:report of {run}"
    assert said in do("logs", run, "inner:report").text
    first = do("logs", run, "inner:report", "--attempt", "1").text
    assert said in first
    assert "exit code 3" in first
    assert said in logs
    executed = nbformat.read(execution.folder / "executed" / "train.ipynb", 4)
    assert "trained" in str(executed.cells)
    assert f'note = "{NOTE}"' in executed.cells[1].source
    job = the_job(tmp_path)
    record = job.record()
    assert (record.workflow, record.workflow_run, record.workflow_node) == ("nightly", run, "train")
    tags = job.directory.spec().yarn_tags
    assert tags[0] == f"azkaban.flow.execid:{execution.execid}"
    assert "azkaban.flow.flowid:nightly" in tags
    (past,) = do("history", "azkaban:nightly").value
    assert (past["run"], past["status"]) == (run, "SUCCEEDED")


@pytest.mark.full
def test_azkabans_kill_ends_the_job_that_a_notebook_started(
    azkaban: servers.Azkaban, nightly: Path, tmp_path: Path
) -> None:
    (tmp_path / "_SUCCESS").touch()
    run = submitted(nightly, tmp_path)
    until((tmp_path / "pid").exists, "the job")
    pid = int((tmp_path / "pid").read_text())
    assert f"Azkaban kills {run}" in do("cancel", run).text
    assert execution_of(azkaban, run).wait(120)
    until(lambda: is_gone(pid), "the job's process stays")
    statuses = {node["path"]: node["status"] for node in do("status", run).value["nodes"]}
    logs = do("logs", run, "train").text
    assert statuses["train"] == "KILLED", logs
    assert {statuses[name] for name in ("inner", "never", "last")} == {"CANCELLED"}
    job = the_job(tmp_path)
    assert job.wait(timeout=60).state is State.CANCELLED
    assert do("status", run).value["status"] == "KILLED"
