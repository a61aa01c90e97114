"""A job directory and an agent for real: the local backend's parts without any Java."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.stop_all()
