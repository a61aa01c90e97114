"""Recorded answers of a ResourceManager (Hadoop 3.5) while applications waited."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "recorded" / "waits.json.gz"


def recorded_waits(situation: str) -> Any:
    """Return new copies of ``scheduler``, ``nodes`` and ``apps`` of one situation."""
    return json.loads(gzip.decompress(_FILE.read_bytes()))[situation]
