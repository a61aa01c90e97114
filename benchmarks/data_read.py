"""Batches per second of `submarine_data` from a local Parquet file, compared with pyarrow itself.

Both read the same file in turns, in processes of their own, with the default batch size and a large
one. Prints the batches per second of each round by wall time and by CPU time (of all threads; it
depends less on what else the machine does), the medians, their ratios, and the peak memory
(resident set) of each. The limit for both ratios is 0.9, for the memory of `submarine_data` 300 MB.
"""

from __future__ import annotations

import argparse
import re
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


def peak_mb() -> float:
    """Return the peak memory of this process in MB; getrusage counts that of its parent too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def read(reader: str, path: str, batch_size: int) -> None:
    """Read the file once; print batches, seconds, CPU seconds and the peak memory in MB."""
    import pyarrow.parquet

    from submarine_data import open_dataset

    begin, begin_cpu = time.perf_counter(), time.process_time()
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
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    print(count, seconds, cpu, peak_mb())


def measure(path: Path, batch_size: int, rounds: int) -> bool:
    """Read alternately and print the figures; return whether a limit is exceeded."""
    found: dict[str, list[list[float]]] = {"pyarrow": [], "submarine_data": []}
    for number in range(rounds + 1):
        for name, figures in found.items():
            command = [sys.executable, __file__, "--batch-size", str(batch_size)]
            done = subprocess.run(
                [*command, "--read", name, str(path)], check=True, stdout=subprocess.PIPE
            )
            if number:  # The first one fills the cache of files.
                figures.append([float(word) for word in done.stdout.split()])
    failed = False
    for position, time_of in ((1, "wall"), (2, "CPU")):
        speeds = {name: [one[0] / one[position] for one in found[name]] for name in found}
        for name, values in speeds.items():
            median = statistics.median(values)
            print(f"{batch_size} records, {time_of:4} {name:15} {median:7.0f} batches/s")
        pairs = zip(speeds["submarine_data"], speeds["pyarrow"], strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        ratio = statistics.median(ratios)
        words = " ".join(f"{one:.2f}" for one in ratios)
        print(f"  ratio {ratio:.2f} (at least {LIMIT}; rounds: {words})")
        failed |= ratio < LIMIT
    peaks = {name: max(one[3] for one in figures) for name, figures in found.items()}
    print("  peak " + ", ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items()))
    return failed or peaks["submarine_data"] > LIMIT_MB


def main() -> int:
    """Write a file and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--group-megabytes", type=int, default=128)
    parser.add_argument("--batch-size", type=int, nargs="+", default=[1024, 8192])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        reader, path_to_read = options.read
        read(reader, path_to_read, options.batch_size[0])
        return 0
    with tempfile.TemporaryDirectory(prefix="submarine-read-") as scratch:
        path = Path(scratch) / "data.parquet"
        write(path, options.megabytes, options.group_megabytes)
        failed = [measure(path, size, options.rounds) for size in options.batch_size]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
