"""Rate of reading Parquet from HDFS with pyarrow, by the clients of `submarine_data` and others.

Writes a file of random numbers (cheap to decode, the worst case of a remote file) to a minicluster,
and reads it in rounds, each reader once a round: pyarrow over the fsspec file system of
hdfs-native, over that of `submarine_data` with hdfs-native, and with WebHDFS; and `open_dataset` of
`submarine_data` with both clients. Needs pyarrow and NumPy. Limits of the ratio to hdfs-native's
own file system: 0.85 and 0.7, by wall time; the ratio by CPU time of this process depends less on
what else the machine does.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from submarine_data import open_dataset
from submarine_data.remote import WebHdfsFileSystem
from submarine_minicluster import Minicluster

#: Reader -> least ratio of its rate to that of `BASE`.
BASE = "hdfs-native fsspec"
CLIENTS = {"hdfs-native": 0.85, "webhdfs": 0.7}
LIMITS = {**CLIENTS, **{f"dataset {client}": limit for client, limit in CLIENTS.items()}}
BATCH = 8192
COLUMNS = 16


def make_file(system: Any, path: str, groups: int, rows: int) -> int:
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
            columns = [arrow.array(random.random(rows)) for _name in names]
            writer.write_table(arrow.table(columns, names=names))
    return int(system.info(path)["size"])


def batches_of(open_file: Callable[[], Any]) -> Iterator[Any]:
    """Read a file by pyarrow."""
    parquet = importlib.import_module("pyarrow.parquet")
    with open_file() as file:
        yield from parquet.ParquetFile(file).iter_batches(BATCH)


def dataset_batches(uri: str) -> Iterator[Any]:
    """Read a file by `submarine_data`."""
    return iter(open_dataset(uri, batch_size=BATCH, rank=0, world=1).to_arrow())


def timed(batches: Iterator[Any]) -> tuple[float, float, int]:
    """Return seconds, CPU seconds and rows of reading the file."""
    begin, begin_cpu = time.perf_counter(), time.process_time()
    rows = sum(batch.num_rows for batch in batches)
    return time.perf_counter() - begin, time.process_time() - begin_cpu, rows


def measure(groups: int, records: int, rounds: int) -> int:
    """Read in rounds, print the rates and ratios; return the exit code."""
    ours = {
        client: importlib.import_module("submarine_data.remote.fsspec_hdfs").HdfsFileSystem(client)
        for client in CLIENTS
    }
    web = WebHdfsFileSystem()
    place, store = web.located("hdfs:///")
    host, _colon, port = place.service.removeprefix("hdfs://").partition(":")
    native = importlib.import_module("hdfs_native.fsspec").HdfsFileSystem(host, int(port))
    path = f"/tmp/benchmark-{secrets.token_hex(4)}/data.parquet"
    try:
        size = make_file(ours["webhdfs"], path, groups, records)
        readers: dict[str, Callable[[], Iterator[Any]]] = {
            BASE: lambda: batches_of(lambda: native.open(path, "rb"))
        }
        for name, system in ours.items():
            readers[name] = partial(batches_of, partial(system.open, path))
        urls = {"hdfs-native": place.service, "webhdfs": place.urls[0].replace("http", "webhdfs")}
        for name, url in urls.items():
            readers[f"dataset {name}"] = partial(dataset_batches, url + path)
        rates: dict[str, list[float]] = {reader: [] for reader in readers}
        cpu_rates: dict[str, list[float]] = {reader: [] for reader in readers}
        for _round in range(rounds + 1):
            for reader, begin in readers.items():
                seconds, cpu, rows = timed(begin())
                if rows != groups * records:
                    raise SystemExit(f"{reader} read {rows} rows of {groups * records}")
                rates[reader].append(size / seconds / 1e6)
                cpu_rates[reader].append(size / cpu / 1e6)
    finally:
        store.delete(path.rpartition("/")[0], recursive=True)
    # The first round warms the caches.
    print(f"{size / 1e6:.0f} MB, {groups} row groups, {rounds} rounds")
    failed = False
    for reader, values in rates.items():
        ratios = [mine / base for mine, base in zip(values, rates[BASE], strict=True)][1:]
        of_cpu = [
            mine / base for mine, base in zip(cpu_rates[reader], cpu_rates[BASE], strict=True)
        ]
        ratio, limit = statistics.median(ratios), LIMITS.get(reader, 0.0)
        failed |= ratio < limit
        words = f"{statistics.median(values[1:]):6.0f} MB/s"
        if limit:
            each = " ".join(f"{one:.2f}" for one in ratios)
            words += f"  ratio {ratio:.2f} (limit {limit}; rounds: {each})"
            words += f", by CPU time {statistics.median(of_cpu[1:]):.2f}"
        print(f"{reader:<20} {words}")
    return int(failed)


def main() -> int:
    """Start the cluster, measure, stop the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--group-megabytes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minicluster", help="use this one; else one is started and removed")
    chosen = parser.parse_args()
    cluster = Minicluster(chosen.minicluster or "benchmark-data-hdfs")
    try:
        cluster.start()
        os.environ.update(cluster.environ())
        groups = max(1, chosen.megabytes // chosen.group_megabytes)
        return measure(groups, chosen.group_megabytes * 1_000_000 // (8 * COLUMNS), chosen.rounds)
    finally:
        if not chosen.minicluster:
            cluster.stop(delete_data=True)


if __name__ == "__main__":
    sys.exit(main())
