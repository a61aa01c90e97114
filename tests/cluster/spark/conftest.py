"""The Spark for jobs on the minicluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Spark of the machine, or of the set-up."""
    if "SPARK_HOME" not in os.environ:
        found = sorted(ROOT.glob(".venv-spark/lib/python3*/site-packages/pyspark"))
        if not found:
            pytest.skip("scripts/setup.sh spark makes .venv-spark")
        monkeypatch.setenv("SPARK_HOME", str(found[0]))
