"""A real Airflow for DAG files of ours: a home of its own, and what its database says of a run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

AIRFLOW = Path(__file__).parents[2] / ".venv-airflow/bin/airflow"
SUBMARINE = Path(sys.executable).parent / "submarine"


class Airflow:
    """One home of Airflow, with its own folder of DAGs and its own database.

    Parameters
    ----------
    environ
        What its steps find besides the environment of the tests.
    """

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        if not AIRFLOW.exists():
            pytest.fail("no Airflow here: scripts/setup.sh airflow")
        self.home, self.dags = home, home / "dags"
        self.dags.mkdir()
        own = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        self._environ = {**os.environ, **environ, **own}
        self.run("db", "migrate")

    def run(self, *words: str, check: bool = True) -> None:
        """A command of Airflow's."""
        done = subprocess.run(
            [AIRFLOW, *words], env=self._environ, capture_output=True, text=True, timeout=540
        )
        assert not check or done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]

    def export(self, flow: Path) -> None:
        """Put a workflow among the DAGs."""
        words = ["workflow", "export", str(flow), "--to", "airflow", "-o", str(self.dags)]
        subprocess.run([SUBMARINE, *words, "--program", str(SUBMARINE)], check=True, timeout=60)

    def states(self, dag: str) -> dict[str, str]:
        """Task -> how it ended."""
        with sqlite3.connect(self.home / "airflow.db") as base:
            query = "select task_id, state from task_instance where dag_id = ?"
            return dict(base.execute(query, (dag,)))
