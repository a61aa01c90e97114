"""A job's store and a directory of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_runtime.storage import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "job").mkdir()
    return LocalStore(str(tmp_path / "job"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made
