"""What a ResourceManager (Hadoop 3.5) answered while applications waited; for tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "recorded" / "waits.json.gz"


def recorded_waits(situation: str) -> Any:
    """``scheduler``, ``nodes`` and ``apps`` of one situation, fresh each time."""
    return json.loads(gzip.decompress(_FILE.read_bytes()))[situation]
