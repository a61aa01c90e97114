"""Batches per second of `submarine_data` from a local Parquet file, compared with pyarrow itself.

Both read the same file in turns, in processes of their own. Prints the batches per second of each
round, the medians, their ratio, and the peak memory (resident set) of each. The limit for the ratio
is 0.9, for the memory of `submarine_data` 300 MB.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = 16
LIMIT = 0.9
LIMIT_MB = 300


def write(path: Path, megabytes: int, group_megabytes: int) -> None:
    """Write random doubles: cheap to decode, so the worst case for the reader around it."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    rows = group_megabytes * 1_000_000 // (8 * COLUMNS)
    names = [f"c{i}" for i in range(COLUMNS)]
    random = numpy.random.default_rng(1)
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(max(1, megabytes // group_megabytes)):
            table = pyarrow.table({name: random.random(rows) for name in names})
            writer.write_table(table, row_group_size=rows)


def read(reader: str, path: str, batch_size: int) -> None:
    """Read the file once, and print batches per second and the peak memory in MB."""
    import pyarrow.parquet

    from submarine_data import open_dataset

    begin = time.perf_counter()
    count = 0
    total = 0.0
    if reader == "pyarrow":
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False)
        batches = file.iter_batches(batch_size=batch_size)
    else:
        batches = iter(open_dataset(path, batch_size=batch_size, rank=0, world=1).to_arrow())
    for batch in batches:
        count += 1
        total += batch.column(1)[0].as_py()
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(count / seconds, peak)


def main() -> int:
    """Measure both alternately."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--group-megabytes", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        reader, path_to_read = options.read
        read(reader, path_to_read, options.batch_size)
        return 0
    speeds: dict[str, list[float]] = {"pyarrow": [], "submarine_data": []}
    peaks = dict.fromkeys(speeds, 0.0)
    with tempfile.TemporaryDirectory(prefix="submarine-read-") as scratch:
        path = Path(scratch) / "data.parquet"
        write(path, options.megabytes, options.group_megabytes)
        for number in range(options.rounds + 1):
            for name in speeds:
                command = [sys.executable, __file__, "--batch-size", str(options.batch_size)]
                done = subprocess.run(
                    [*command, "--read", name, str(path)], check=True, stdout=subprocess.PIPE
                )
                speed, peak = map(float, done.stdout.split())
                peaks[name] = max(peaks[name], peak)
                if number:  # The first one fills the cache of files.
                    speeds[name].append(speed)
    for name, values in speeds.items():
        rounds = " ".join(f"{value:.0f}" for value in values)
        print(
            f"{name:15} {statistics.median(values):6.0f} batches/s (rounds: {rounds}), "
            f"peak {peaks[name]:.0f} MB"
        )
    pairs = zip(speeds["submarine_data"], speeds["pyarrow"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"ratio {ratio:.2f} (at least {LIMIT})")
    return int(ratio < LIMIT or peaks["submarine_data"] > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
