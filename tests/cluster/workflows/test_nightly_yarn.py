"""The example of a workflow on the cluster: three notebooks, their data on HDFS, a job on YARN."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import nbconvert
import nbformat
import pytest

from submarine_jobs.commands import execute
from tests.cluster.conftest import Shell
from tests.local.workflows.airflow_home import Airflow

pytestmark = pytest.mark.cluster
EXAMPLE = Path(__file__).parents[3] / "examples/nightly"
CARD = "application/vnd.submarine.job.v1+json"


def submarine(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "submarine_jobs.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=540)


@pytest.mark.full
def test_the_notebooks_run_after_each_other_and_the_job_is_their_workflows(
    shell: Shell, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "nightly")
    flow = str(tmp_path / "nightly/nightly.flow")
    data = f"hdfs:///tmp/nightly-{uuid.uuid4().hex[:8]}"
    done = submarine("workflow", "run", flow, "-p", "data", data, "--json")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    run = json.loads(done.stdout)
    words = ["list", "--workflow", "nightly", "--workflow-run", run["run"]]
    listed = execute(words, shell).value
    assert [job["workflow_node"] for job in listed] == ["train"]
    assert listed[0]["state"] == "SUCCEEDED"
    executed = Path(run["folder"]) / "notebooks"
    report = (executed / "report.ipynb").read_text(encoding="utf-8")
    assert listed[0]["job_id"] in report
    train = nbformat.read(executed / "train.ipynb", 4)
    cards = [out for cell in train.cells for out in cell.get("outputs", []) if CARD in str(out)]
    assert cards
    assert set(cards[-1]["data"]) >= {CARD, "text/html", "text/plain"}
    assert "SUCCEEDED" in cards[-1]["data"]["text/plain"]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(train)
    assert listed[0]["job_id"] in page


@pytest.mark.full
def test_airflow_runs_the_notebooks_and_the_job_is_on_the_cluster(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "airflow").mkdir()
    airflow = Airflow(tmp_path / "airflow", {})
    shutil.copytree(EXAMPLE, tmp_path / "nightly")
    airflow.export(tmp_path / "nightly/nightly.flow")
    data = f"hdfs:///tmp/nightly-{uuid.uuid4().hex[:8]}"
    airflow.run("dags", "test", "nightly", "--conf", json.dumps({"data": data}))
    assert airflow.states("nightly") == dict.fromkeys(("features", "train", "report"), "success")
    (report,) = (airflow.dags / "nightly/runs").glob("*/report.ipynb")
    text = report.read_text(encoding="utf-8")
    listed = execute(["list", "--workflow", "nightly"], shell).value
    (job,) = [job for job in listed if job["job_id"] in text]
    assert (job["state"], job["backend"]) == ("SUCCEEDED", "yarn")
