"""An exported workflow under a real Airflow: `airflow dags test` of the file as it was written."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.local.workflows.airflow_home import Airflow, check_killed
from tests.local.workflows.workflow_runs import Training

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


def test_steps_run_are_skipped_and_fail_as_the_workflow_says(tmp_path):
    airflow = Airflow(tmp_path, {"SUBMARINE_BACKEND": "local"})
    (tmp_path / "steps.flow").write_text(FLOW)
    airflow.export(tmp_path / "steps.flow")
    airflow.run("dags", "test", "steps", check=False)
    assert airflow.states("steps") == {
        "count": "success",
        "inner.submarine_start": "success",
        "inner.say": "success",
        "inner.done": "success",
        "never": "skipped",
        "broken": "failed",
        "after": "success",
        "last": "upstream_failed",
    }
    assert (tmp_path / "said").read_text() == "good day 2026-01-01 inner:say\n"
    assert (tmp_path / "after").exists()
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda it: it.name
)
def test_a_run_that_is_killed_leaves_no_job_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    monkeypatch.setenv("SUBMARINE_JOB_ROOT", str(tmp_path / "jobs"))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    training = Training(tmp_path)
    try:
        check_killed(Airflow(tmp_path, {}), training, number)
    finally:
        training.close()
