"""A gang that reads Parquet with `submarine_data`, and digests of the records that it must read.

Each worker adds a hash of every id to a sum for each epoch, and stores the sums with the state of
the dataset in its checkpoint, as a model would be. So the sums of all workers show whether a record
was lost or used twice, also where one of them was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from submarine_jobs.client import Job
from submarine_jobs.options import parse_input
from submarine_runtime.protocol import layout
from tests.submission import Submit
from tests.waiting import until

WORKERS, EPOCHS = 4, 3
#: Bytes of a record: an id and fifteen random numbers.
RECORD = 128
#: Waits in the middle of its second epoch, some batches after a checkpoint, for the file FLAG.
PROGRAM = """
import json, os, time
import numpy
from submarine_data import open_dataset

rank = int(os.environ["SUBMARINE_INDEX"])
place = os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], f"state-rank{rank}.json")
dataset = open_dataset(os.environ["SUBMARINE_INPUT_T"], shuffle=3000, seed=7, batch_size=BATCH)
sums, restored = {}, os.path.exists(place)
if restored:
    with open(place) as file:
        saved = json.load(file)
    sums = saved["sums"]
    dataset.restore(saved["state"])
    print("restored", saved["state"]["epoch"], sums, flush=True)

def save():
    with open(place + ".tmp", "w") as file:
        json.dump({"sums": sums, "state": dataset.state()}, file)
    os.rename(place + ".tmp", place)

# The weights of the units are bytes.
half = dataset.describe()["share_bytes"] // RECORD // 2
for number, batch in enumerate(dataset.to_numpy().epochs(EPOCHS)):
    epoch = str(dataset.next_epoch - 1)
    value = batch["id"].astype(numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> numpy.uint64(29))) * numpy.uint64(0xBF58476D1CE4E5B9)
    count, total = sums.get(epoch, (0, 0))
    added = int((value ^ (value >> numpy.uint64(32))).sum(dtype=numpy.uint64))
    sums[epoch] = (count + len(value), (total + added) % 2**64)
    if number % EVERY == EVERY - 1:
        save()
    if not restored and epoch == "1" and sums[epoch][0] > half and number % EVERY == EVERY // 2:
        print("half", flush=True)
        while not os.path.exists(FLAG):
            time.sleep(0.05)
save()
print("sums", json.dumps(sums), flush=True)
"""
#: The worker that is killed while it waits.
KILLED = 1


class Size(NamedTuple):
    """What is read: records, in files of different sizes, in batches."""

    records: int
    group: int
    batch: int
    every: int
    memory: int


SMALL = Size(40_000, 1_000, 100, 10, 512)
#: 2 GB, in row groups of 32 MB.
LARGE = Size(16_777_216, 262_144, 4096, 50, 1024)
sizes = pytest.mark.parametrize(
    "size", [SMALL, pytest.param(LARGE, marks=pytest.mark.full)], ids=["5 MB", "2 GB"]
)


def write_files(size: Size, opened: Callable[[str], Any]) -> None:
    """Write all records to five files, of which the first has half of them."""
    arrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(1)
    values = {f"x{i}": random.random(size.group) for i in range(RECORD // 8 - 1)}
    bounds = [0, 8, 10, 12, 15, 16]
    for number, (first, last) in enumerate(pairwise(bounds)):
        begin, end = (size.records * one // 16 for one in (first, last))
        with opened(f"part é {number}.parquet") as file:
            writer = None
            for start in range(begin, end, size.group):
                ids = numpy.arange(start, min(start + size.group, end))
                rest = {name: column[: len(ids)] for name, column in values.items()}
                table = arrow.table({"id": ids, **rest})
                if writer is None:
                    writer = parquet.ParquetWriter(
                        file, table.schema, compression="none", use_dictionary=False
                    )
                writer.write_table(table, row_group_size=size.group)
            assert writer is not None
            writer.close()


def start(submit: Submit, uri: str, size: Size, flag: Path) -> Job:
    """Submit the gang; it continues when there is the file ``flag``."""
    values = {
        "BATCH": size.batch,
        "RECORD": RECORD,
        "EPOCHS": EPOCHS,
        "FLAG": repr(str(flag)),
        "EVERY": size.every,
    }
    source = PROGRAM
    for name, value in values.items():
        source = re.sub(rf"\b{name}\b", str(value).replace("\\", r"\\"), source)
    inputs = (parse_input(f"T={uri}:mount"),)
    return submit(
        source, instances=WORKERS, memory=size.memory, inputs=inputs, max_restarts=2, restore="own"
    )


def text_of(job: Job, number: int) -> str:
    """What a worker has printed, in all attempts."""
    chunks = job.read_log(task=f"worker:{number}")
    return b"".join(chunk.data for chunk in chunks).decode()


def with_a_common_round(job: Job) -> set[str]:
    """The tasks whose snapshots answer a round: until all do, a gang starts from the beginning."""
    root = f"{job.directory.path}/{layout.SNAPSHOTS}"
    found = set()
    for name, _size in job.directory.storage.walk(root):
        if re.search(r"/checkpoints-\d+\.json$", name):
            # One that is deleted now has a successor.
            with contextlib.suppress(FileNotFoundError):
                manifest = json.loads(job.directory.storage.read(f"{root}/{name}"))
                if manifest.get("answered"):
                    found.add(name.partition("/")[0])
    return found


def kill_and_check(job: Job, size: Size, flag: Path, seconds: float) -> None:
    """Kill the program of a worker in its second epoch, and compare the sums of each epoch."""
    numpy = pytest.importorskip("numpy")
    name = f"worker:{KILLED}"

    def ready() -> bool:
        record = job.record()
        assert not record.state.ended, (record.detail, text_of(job, KILLED))
        snapshots = {event.task for event in record.events if event.kind == "snapshot"}
        halves = all("half" in text_of(job, number) for number in range(WORKERS))
        return len(snapshots) == WORKERS and halves and len(with_a_common_round(job)) == WORKERS

    until(ready, seconds=seconds)
    pid = next(task.pid for task in job.record().tasks if task.task == name)
    assert pid
    os.kill(pid, signal.SIGKILL)
    flag.touch()
    record = job.wait_success(seconds)
    assert sum(task.attempt for task in record.tasks) + record.epoch > WORKERS + 1
    assert re.search(r"^restored [01] \{.*'0'", text_of(job, KILLED), re.MULTILINE)

    ids = numpy.arange(size.records, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    ids = (ids ^ (ids >> numpy.uint64(29))) * numpy.uint64(0xBF58476D1CE4E5B9)
    expected = int((ids ^ (ids >> numpy.uint64(32))).sum(dtype=numpy.uint64))
    counts: dict[str, list[int]] = {str(epoch): [0, 0] for epoch in range(EPOCHS)}
    for number in range(WORKERS):
        found = re.findall(r"^sums (.*)$", text_of(job, number), re.MULTILINE)
        for epoch, (count, total) in json.loads(found[-1]).items():
            assert count > 0
            counts[epoch][0] += count
            counts[epoch][1] = (counts[epoch][1] + total) % 2**64
    assert counts == {str(epoch): [size.records, expected] for epoch in range(EPOCHS)}


def folder_opener(folder: Path) -> Callable[[str], Any]:
    """Open files of a local directory for writing."""
    folder.mkdir(parents=True)
    return lambda name: (folder / name).open("wb")
