"""The Spark for jobs on the minicluster."""

from __future__ import annotations

import pytest

from tests.spark import spark_home


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Spark of the machine, or of the set-up."""
    monkeypatch.setenv("SPARK_HOME", str(spark_home()))
