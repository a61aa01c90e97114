"""A working directory with the digits, as the examples expect it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def work(tmp_path: Path, digits: Path) -> Path:
    shutil.copy(digits, tmp_path)
    return tmp_path
