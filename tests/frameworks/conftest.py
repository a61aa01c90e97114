"""The digits, as the examples expect them in their working directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.gang import EXAMPLES


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, str(EXAMPLES / "make_digits.py")], cwd=place, check=True)
    return place / "digits.npz"


@pytest.fixture
def work(tmp_path: Path, digits: Path) -> Path:
    shutil.copy(digits, tmp_path)
    return tmp_path
