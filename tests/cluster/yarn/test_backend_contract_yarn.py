"""The contract test suite on YARN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.model import Profile
from submarine_jobs.testing import BackendUnderTest
from tests.waiting import PATIENCE

pytest_plugins = ["submarine_jobs.testing.pytest_plugin"]
pytestmark = [pytest.mark.cluster, pytest.mark.full]

_SITE = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"


@pytest.fixture
def backend_under_test(yarn_profile: Profile, tmp_path: Path) -> Iterator[BackendUnderTest]:
    away = tmp_path / "away"
    away.mkdir()
    (away / "core-site.xml").write_text(_SITE.format("fs.defaultFS", "hdfs://127.0.0.1:1"))
    site = _SITE.format("yarn.resourcemanager.address", "127.0.0.1:1")
    (away / "yarn-site.xml").write_text(site)
    unreachable = replace(yarn_profile, hadoop_conf_dir=away, state_dir=tmp_path / "state")
    yield BackendUnderTest(yarn_profile, unreachable=unreachable, patience=2 * PATIENCE)
    stop_driver(unreachable)
