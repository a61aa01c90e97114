"""The memory of `submarine_data` does not depend on the size of files and row groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.data.large_parquet import GROUPS, LIMIT_MB, ROWS, peak_of_reading, write_large

pytestmark = pytest.mark.full


def test_5_gb_in_large_row_groups_are_read_with_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    try:
        write_large(path)
        records, peak = peak_of_reading(str(path), {})
    finally:
        path.unlink(missing_ok=True)
    print(f"peak {peak:.0f} MB")
    assert records == GROUPS * ROWS
    assert peak < LIMIT_MB
