"""A large Parquet file of large row groups, and the memory of a process that reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

COLUMNS, ROWS = 16, 1 << 20
#: Of 128 MiB each: 5.4 GB.
GROUPS = 40
LIMIT_MB = 300
READ = """
import json, re, sys
from submarine_data import open_dataset

records = total = 0
for batch in open_dataset(sys.argv[1], rank=0, world=1).to_arrow():
    records += batch.num_rows
    total += batch.column(0)[0].as_py()
status = open("/proc/self/status").read()
print(json.dumps([records, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) / 1024]))
"""


def write_large(file: Any, groups: int = GROUPS) -> None:
    """Write one row group of random numbers many times, uncompressed."""
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    random = pytest.importorskip("numpy").random.default_rng(1)
    table = arrow.table({f"c{number}": random.random(ROWS) for number in range(COLUMNS)})
    with parquet.ParquetWriter(
        file, table.schema, compression="none", use_dictionary=False
    ) as writer:
        for _number in range(groups):
            writer.write_table(table, row_group_size=ROWS)


def peak_of_reading(uri: str, variables: Mapping[str, str]) -> tuple[int, float]:
    """Read the file in a process of its own; return the records and the peak memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", READ, uri],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **variables},
        timeout=1200,
    )
    records, peak = json.loads(done.stdout)
    return records, peak
