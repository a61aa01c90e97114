"""Rate of reading Parquet from HDFS with pyarrow, by the clients of `submarine_data` and others.

Writes a file of random numbers (cheap to decode, the worst case of a remote file) to a minicluster,
and reads it in rounds, each client once a round: pyarrow over the fsspec file system of
hdfs-native, over that of `submarine_data` with hdfs-native, and with WebHDFS. Needs pyarrow and
NumPy. Limits of the ratio to hdfs-native's own file system: 0.85 and 0.7.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from submarine_data.remote import WebHdfsFileSystem
from submarine_minicluster import Minicluster

#: Client -> least ratio of its rate to that of `BASE`.
BASE = "hdfs-native fsspec"
LIMITS = {"hdfs-native": 0.85, "webhdfs": 0.7}
COLUMNS, ROWS = 16, 131_072


def make_file(system: Any, path: str, groups: int) -> int:
    """Write the file; return its size in bytes."""
    arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    numpy = importlib.import_module("numpy")
    random = numpy.random.default_rng(1)
    names = [f"c{number}" for number in range(COLUMNS)]
    schema = arrow.schema([(name, arrow.float64()) for name in names])
    with (
        system.open(path, "wb") as file,
        parquet.ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer,
    ):
        for _number in range(groups):
            columns = [arrow.array(random.random(ROWS)) for _name in names]
            writer.write_table(arrow.table(columns, names=names))
    return int(system.info(path)["size"])


def timed(open_file: Callable[[], Any]) -> tuple[float, int]:
    """Return seconds and rows of reading the file in batches."""
    parquet = importlib.import_module("pyarrow.parquet")
    begin, rows = time.perf_counter(), 0
    with open_file() as file:
        for batch in parquet.ParquetFile(file).iter_batches(8192):
            rows += batch.num_rows
    return time.perf_counter() - begin, rows


def measure(groups: int, rounds: int) -> int:
    """Read in rounds, print the rates and ratios; return the exit code."""
    ours = {
        client: importlib.import_module("submarine_data.remote.fsspec_hdfs").HdfsFileSystem(client)
        for client in LIMITS
    }
    web = WebHdfsFileSystem()
    place, store = web.located("hdfs:///")
    host, _colon, port = place.service.removeprefix("hdfs://").partition(":")
    native = importlib.import_module("hdfs_native.fsspec").HdfsFileSystem(host, int(port))
    path = f"/tmp/benchmark-{secrets.token_hex(4)}/data.parquet"
    try:
        size = make_file(ours["webhdfs"], path, groups)
        clients: dict[str, Callable[[], Any]] = {BASE: lambda: native.open(path, "rb")}
        clients.update({name: partial(system.open, path) for name, system in ours.items()})
        rates: dict[str, list[float]] = {client: [] for client in clients}
        for _round in range(rounds + 1):
            for client, open_file in clients.items():
                seconds, rows = timed(open_file)
                if rows != groups * ROWS:
                    raise SystemExit(f"{client} read {rows} rows of {groups * ROWS}")
                rates[client].append(size / seconds / 1e6)
    finally:
        store.delete(path.rpartition("/")[0], recursive=True)
    # The first round warms the caches.
    print(f"{size / 1e6:.0f} MB, {groups} row groups, {rounds} rounds")
    failed = False
    for client, values in rates.items():
        ratios = [mine / base for mine, base in zip(values, rates[BASE], strict=True)][1:]
        ratio, limit = statistics.median(ratios), LIMITS.get(client, 0.0)
        failed |= ratio < limit
        words = f"ratio {ratio:.2f}; limit {limit}" if limit else ""
        print(f"{client:<20} {statistics.median(values[1:]):6.0f} MB/s  {words}")
    return int(failed)


def main() -> int:
    """Start the cluster, measure, stop the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=28)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minicluster", help="use this one; else one is started and removed")
    chosen = parser.parse_args()
    cluster = Minicluster(chosen.minicluster or "benchmark-data-hdfs")
    try:
        cluster.start()
        os.environ.update(cluster.environ())
        return measure(chosen.groups, chosen.rounds)
    finally:
        if not chosen.minicluster:
            cluster.stop(delete_data=True)


if __name__ == "__main__":
    sys.exit(main())
