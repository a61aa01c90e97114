"""The Spark of this machine for tests: ``SPARK_HOME``, or that of ``scripts/setup.sh spark``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def spark_home() -> Path:
    """The directory with ``bin`` and ``jars``; without one the test is skipped."""
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    found = sorted(ROOT.glob(".venv-spark/lib/python3*/site-packages/pyspark"))
    if not found:
        pytest.skip("scripts/setup.sh spark makes .venv-spark")
    return found[0]
