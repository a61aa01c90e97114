"""The contract test suite on the local backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_jobs.model import Profile
from submarine_jobs.testing import BackendUnderTest, processes_of
from tests.waiting import PATIENCE

pytest_plugins = ["submarine_jobs.testing.pytest_plugin"]


@pytest.fixture
def backend_under_test(tmp_path: Path) -> BackendUnderTest:
    state = tmp_path / "state"

    def leftovers(job_id: str) -> list[str]:
        return [*processes_of(job_id), *map(str, (state / "local").glob(job_id))]

    profile = Profile(backend="local", state_dir=state)
    return BackendUnderTest(profile, leftovers=leftovers, patience=PATIENCE)
