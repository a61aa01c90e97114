"""The contract test suite of Submarine, run on the toy backend: one fixture adds all tests."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.model import Profile
from submarine_jobs.testing import BackendUnderTest, processes_of

pytest_plugins = ["submarine_jobs.testing.pytest_plugin"]


@pytest.fixture
def backend_under_test(tmp_path: Path) -> BackendUnderTest:
    system = tmp_path / "system"
    system.mkdir()
    settings = {"toy_directory": str(system)}
    profile = Profile(backend="toy", state_dir=tmp_path / "state", settings=settings)

    def leftovers(job_id: str) -> list[str]:
        return [*processes_of(job_id), *map(str, system.glob(job_id))]

    return BackendUnderTest(
        profile,
        unreachable=replace(profile, settings={"toy_directory": str(tmp_path / "missing")}),
        leftovers=leftovers,
        patience=float(os.environ.get("TOY_PATIENCE", "30")),
    )
