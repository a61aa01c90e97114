"""An exported workflow under a real Airflow: `airflow dags test` of the file as it was written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AIRFLOW = ROOT / ".venv-airflow/bin/airflow"
SUBMARINE = Path(sys.executable).parent / "submarine"
EXAMPLE = ROOT / "examples/nightly"
FLOW = """\
config: {date: "2026-01-01", env.GREETING: "good day ${date}"}
nodes:
  - name: count
    type: command
    config: {command: "bash -c 'echo \\"{\\\\\\"rows\\\\\\": 7}\\" > $JOB_OUTPUT_PROP_FILE'"}
  - name: inner
    type: flow
    dependsOn: [count]
    condition: one_success && ${count:rows} > 5
    nodes:
      - name: say
        type: command
        config: {command: "bash -c 'echo \\"$GREETING $SUBMARINE_WORKFLOW_NODE\\" > ../../said'"}
      - {name: done, type: noop, dependsOn: [say]}
  - name: never
    type: command
    config: {command: "touch ../../never"}
    dependsOn: [count]
    condition: ${count:rows} > 8
  - name: broken
    type: command
    config: {command: "false"}
    dependsOn: [inner]
  - name: after
    type: command
    config: {command: "touch ../../after"}
    dependsOn: [never, broken]
    condition: all_done
  - {name: last, type: noop, dependsOn: [broken]}
"""

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    if not AIRFLOW.exists():
        pytest.fail("no Airflow here: scripts/setup.sh airflow")
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    airflow(home, "db", "migrate")
    return home


def airflow(home, *words, check=True):
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "SUBMARINE_BACKEND": "local",
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "HADOOP_CONF_DIR": "",
    }
    done = subprocess.run(
        [AIRFLOW, *words], env=environment, capture_output=True, text=True, timeout=540
    )
    assert not check or done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done


def export(flow, home):
    words = ["workflow", "export", str(flow), "--to", "airflow", "-o", str(home / "dags")]
    subprocess.run([SUBMARINE, *words, "--program", str(SUBMARINE)], check=True, timeout=60)


def states(home, dag):
    with sqlite3.connect(home / "airflow.db") as base:
        return dict(
            base.execute("select task_id, state from task_instance where dag_id = ?", (dag,))
        )


def test_steps_run_are_skipped_and_fail_as_the_workflow_says(home, tmp_path):
    (tmp_path / "steps.flow").write_text(FLOW)
    export(tmp_path / "steps.flow", home)
    airflow(home, "dags", "test", "steps", check=False)
    assert states(home, "steps") == {
        "count": "success",
        "inner.submarine_start": "success",
        "inner.say": "success",
        "inner.done": "success",
        "never": "skipped",
        "broken": "failed",
        "after": "success",
        "last": "upstream_failed",
    }
    assert (home / "said").read_text() == "good day 2026-01-01 inner:say\n"
    assert (home / "after").exists()
    assert not (home / "never").exists()


def test_the_nightly_example_runs_to_its_end(home, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "nightly")
    export(tmp_path / "nightly/nightly.flow", home)
    data = tmp_path / "data"
    airflow(home, "dags", "test", "nightly", "--conf", json.dumps({"data": str(data)}))
    assert states(home, "nightly") == dict.fromkeys(("features", "train", "report"), "success")
    assert (data / "_SUCCESS").exists()
    (report,) = (home / "dags/nightly/runs").glob("*/report.ipynb")
    assert "% right" in report.read_text()
