"""A real Airflow for DAG files of ours: a home of its own, and what its database says of a run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import nbformat
import psutil
import pytest

from tests.local.workflows.workflow_runs import Training
from tests.waiting import until

AIRFLOW = Path(__file__).parents[3] / ".venv-airflow/bin/airflow"
SUBMARINE = Path(sys.executable).parent / "submarine"


TRAINING = """\
config: {days: "4", folder: ""}
nodes:
  - name: train
    notebook: train.ipynb
    params: {days: "${days}", folder: "${folder}"}
  - name: report
    type: command
    dependsOn: [train]
    condition: ${train:accuracy} > 0.85
    config: {command: touch report}
"""


class Airflow:
    """One home of Airflow, with its own folder of DAGs and its own database.

    Parameters
    ----------
    environ
        What its steps find besides the environment of the tests.
    """

    _empty: ClassVar[bytes] = b""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        if not AIRFLOW.exists():
            pytest.fail("no Airflow here: scripts/setup.sh airflow")
        self.home, self.dags = home, home / "dags"
        self.dags.mkdir()
        own = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        self._environ = {**os.environ, **environ, **own}
        database = home / "airflow.db"
        if Airflow._empty:
            database.write_bytes(Airflow._empty)
        else:  # it takes a minute
            self.run("db", "migrate")
            Airflow._empty = database.read_bytes()

    def run(self, *words: str, check: bool = True) -> None:
        """A command of Airflow's."""
        done = subprocess.run(
            [AIRFLOW, *words], env=self._environ, capture_output=True, text=True, timeout=540
        )
        assert not check or done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A command of Airflow's that is not waited for, as from a shell of its own."""
        with (self.home / "said").open("ab") as said:
            return subprocess.Popen(
                [AIRFLOW, *words],
                env=self._environ,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def said(self) -> str:
        """The end of what such commands have said."""
        return (self.home / "said").read_text(errors="replace")[-5000:]

    def processes(self) -> list[list[str]]:
        """Command lines of all that this Airflow has started and that still runs."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                line = process.cmdline()
                # A driver is of all jobs of this user, and outlives them.
                if process.environ().get("AIRFLOW_HOME") == str(self.home) and line:
                    found += [] if "skein" in str(line) else [line]
        return found

    def export(self, flow: Path) -> None:
        """Put a workflow among the DAGs."""
        words = ["workflow", "export", str(flow), "--to", "airflow", "-o", str(self.dags)]
        subprocess.run([SUBMARINE, *words, "--program", str(SUBMARINE)], check=True, timeout=60)

    def states(self, dag: str) -> dict[str, str]:
        """Task -> how it ended."""
        with sqlite3.connect(self.home / "airflow.db") as base:
            query = "select task_id, state from task_instance where dag_id = ?"
            return dict(base.execute(query, (dag,)))


def check_killed(airflow: Airflow, training: Training, number: signal.Signals) -> None:
    """Kill a run whose notebook has a job; the job ends, the output is kept, another run works."""
    airflow.export(training.write(TRAINING))
    words = ("dags", "test", "w", "--conf", json.dumps({"folder": str(training.folder)}))
    run = airflow.start(*words)
    try:
        pid = training.file("pid")
        until(lambda: pid.exists() or run.poll() is not None, "no job has begun", 300)
        assert pid.exists(), airflow.said()
        run.send_signal(number)
        training.check_job_ended(int(pid.read_text()))
        run.wait(120)
    finally:
        run.kill()
    until(lambda: not airflow.processes(), f"left behind: {airflow.processes()}")
    [output] = (airflow.dags / "w/runs").glob("*/train.ipynb")
    assert "RunEnded" in json.dumps(nbformat.read(output, 4).cells)
    assert not (airflow.dags / "w/report").exists()
    training.file("go").touch()
    airflow.run(*words)
    assert airflow.states("w") == {"train": "success", "report": "success"}
    assert (airflow.dags / "w/report").exists()
    assert sorted(job["state"] for job in training.jobs()) == ["CANCELLED", "SUCCEEDED"]
