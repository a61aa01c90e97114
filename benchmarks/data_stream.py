"""Speed of a program that reads an input of mode `stream`, compared with mode `download`.

The program reads lines of text, or batches of a Parquet file, from the local file and from the pipe
of a feeder in turns, and does nothing else with them or computes 5 ms for each batch. Prints the
seconds of each round and the ratios; the limits are 0.9 with a computation, and without one 0.6 for
lines and 0.4 for Arrow frames.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Frame -> the least ratio of a program that only reads.
LIMITS = {"lines": 0.6, "arrow": 0.4}
COMPUTING = 0.9
_COLUMNS, _ROWS = 16, 8192
#: Bytes of lines that are a batch.
_BATCH = 1 << 20
_MS = 5


def write(folder: Path, megabytes: int, frame: str) -> None:
    """Write the data: lines of 100 bytes, or random doubles."""
    if frame == "lines":
        block = (b"x" * 99 + b"\n") * 10_000
        with open(folder / "data.txt", "wb") as file:
            for _ in range(megabytes):
                file.write(block)
        return
    import numpy
    import pyarrow
    import pyarrow.parquet

    random = numpy.random.default_rng(1)
    schema = pyarrow.schema([(f"c{i}", pyarrow.float64()) for i in range(_COLUMNS)])
    path = folder / "data.parquet"
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for _ in range(max(1, megabytes // 16)):
            rows = 16_000_000 // (8 * _COLUMNS)
            table = pyarrow.table({name: random.random(rows) for name in schema.names})
            writer.write_table(table, row_group_size=rows)


def read(path: str, frame: str, work: int) -> int:
    """Read all records as a program does; compute for each batch; return their number."""
    data = b"x" * work
    count = 0
    if frame == "lines":
        due = 0
        with open(path, "rb", buffering=1 << 20) as file:
            for line in file:
                due += len(line)
                count += 1
                if due >= _BATCH:
                    due = 0
                    hashlib.sha256(data)
        return count
    import pyarrow
    import pyarrow.parquet

    with open(path, "rb", buffering=1 << 20) as file:
        if path.endswith(".parquet"):
            batches = pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=_ROWS)
        else:
            batches = pyarrow.ipc.open_stream(file)
        for batch in batches:
            count += batch.num_rows
            hashlib.sha256(data)
    return count


def calibrate() -> int:
    """Return the bytes whose digest takes 5 ms."""
    data = b"x" * (1 << 22)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        hashlib.sha256(data)
        times.append(time.perf_counter() - begin)
    return int(len(data) * _MS / 1000 / min(times))


def measure(path: str, frame: str, work: int) -> float:
    """Read in a process of its own; return the seconds from the opening to the end."""
    command = [sys.executable, __file__, "--frame", frame, "--read", path, str(work)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def measure_stream(folder: Path, frame: str, work: int) -> float:
    """Read from a feeder as the agent starts it."""
    (data,) = (one for one in folder.iterdir() if one.name.startswith("data."))
    stream = folder / "input"
    stream.mkdir(exist_ok=True)
    order = {"files": [[str(data), data.stat().st_size]], "rank": 0, "world": 1}
    words = [f"frame={frame}"]
    (stream / "stream.json").write_text(json.dumps({**order, "options": words}))
    (stream / "history.json").unlink(missing_ok=True)
    os.mkfifo(stream / "stream")
    command = [sys.executable, "-m", "submarine_data.feeder", str(stream)]
    feeder = subprocess.Popen(command)
    try:
        time.sleep(1)  # The program of a job starts later, too.
        seconds = measure(str(stream / "stream"), frame, work)
        if feeder.wait():
            raise SystemExit("the feeder failed")
        return seconds
    finally:
        feeder.kill()


def main() -> int:
    """Measure both alternately."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frame", choices=sorted(LIMITS), action="append")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        path, work = options.read
        begin = time.perf_counter()
        read(path, options.frame[0], int(work))
        print(time.perf_counter() - begin)
        return 0
    failed = False
    work = calibrate()
    for frame in options.frame or LIMITS:
        with tempfile.TemporaryDirectory(prefix="submarine-stream-") as scratch:
            folder = Path(scratch)
            write(folder, options.megabytes, frame)
            (data,) = folder.iterdir()
            for what, amount, limit in (
                ("reads", 0, LIMITS[frame]),
                (f"computes {_MS} ms for each batch", work, COMPUTING),
            ):
                times: dict[str, list[float]] = {"download": [], "stream": []}
                for number in range(options.rounds + 1):
                    found = {
                        "download": measure(str(data), frame, amount),
                        "stream": measure_stream(folder, frame, amount),
                    }
                    for mode, seconds in found.items() if number else ():
                        times[mode].append(seconds)
                pairs = zip(times["download"], times["stream"], strict=True)
                ratio = statistics.median(theirs / ours for theirs, ours in pairs)
                failed = failed or ratio < limit
                rounds = "; ".join(
                    f"{mode} {' '.join(f'{value:.2f}' for value in values)} s"
                    for mode, values in times.items()
                )
                print(
                    f"{frame}, {what}: ratio {ratio:.2f} (at least {limit}); {rounds}", flush=True
                )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {peak:.0f} MB")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
