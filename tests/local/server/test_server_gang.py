"""What the server asks of a real gang's port and its coordinator passes on: looks, and times."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, JobDirectory
from submarine_jobs.errors import ClusterError
from submarine_jobs.logs import ShippedLog, parse_index, shipped_index
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import LogKey
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.reading import content, files_below
from tests.waiting import until

#: Writes into its TensorBoard file on request, and prints when it did.
PROGRAM = """\
import os, time
board = os.path.join(os.environ["SUBMARINE_TENSORBOARD_DIR"], "events.out.tfevents.1")
for number in range(1, 4):
    while not os.path.exists({place!r} + str(number)):
        time.sleep(0.05)
    if number < 3:
        with open(board, "ab") as events:
            events.write(b"x" * 100)
    print(time.time(), flush=True)
"""
WORKERS = ("worker:0", "worker:1")


def client_of(gang: GangProcesses) -> AgentClient:
    until((gang.job_dir / "live.json").exists)
    live = json.loads((gang.job_dir / "live.json").read_text())
    return AgentClient(AgentAddress(live["host"], live["port"], gang.secret), 20.0)


def lines_of(client: AgentClient, task: str) -> bytes:
    try:
        return client.log(task, "stdout", 0)[0].data
    except ClusterError:
        return b""  # it has not begun


def pieces(gang: GangProcesses, task: str) -> int:
    """Bytes of the task's TensorBoard file that have come to the job directory."""
    place = gang.job_dir / "growing" / task.replace(":", "-")
    return sum(len(content(path)) for path in files_below(place))


def test_a_look_and_a_question_for_times_reach_every_task(
    gang: GangProcesses, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    # Without a viewer nothing would be shipped for an hour.
    gang.prepare(
        PROGRAM.format(place=str(go)),
        [make_role("worker", 2)],
        {"sync_interval": 3600.0},
    )
    gang.start()
    client = client_of(gang)
    # The second piece is not what a first round of its own might have brought.
    for number, size in ((1, 100), (2, 200)):
        Path(f"{go}{number}").touch()
        for task in WORKERS:
            until(partial(lambda task, n: lines_of(client, task).count(b"\n") == n, task, number))
        client.look()
        for task in WORKERS:
            until(partial(lambda task, least: pieces(gang, task) >= least, task, size))

    marks = {}
    for task in WORKERS:
        length = len(lines_of(client, task))
        marks[task] = until(partial(noted, client, task, length), seconds=60.0)
        check_times(lines_of(client, task), marks[task])
    with pytest.raises(ClusterError, match="404"):
        client.times("worker:7", "stdout", "e1-a1")
    with pytest.raises(ClusterError, match="404"):
        client.times("worker:1", "stdout", "e9-a9")

    Path(f"{go}3").touch()
    record = gang.wait()
    directory = JobDirectory(LocalStorage(), str(gang.job_dir))
    for task in WORKERS:
        key = LogKey(task, "e1-a1", "stdout")
        shipped = shipped_index(directory, key)
        assert shipped is not None
        assert shipped[: len(marks[task])] == marks[task]
        assert shipped[-1].offset == record.logs[str(key)]
        check_times(gang.log(task).encode(), shipped)
        segments = ShippedLog(directory, task, "e1-a1")
        segments.refresh()
        assert segments.marks("stdout")[-1].offset == record.logs[str(key)]


def noted(client: AgentClient, task: str, length: int) -> Any:
    """The task's index once it tells of the whole log; the task looks every second."""
    found = parse_index(client.times(task, "stdout", "e1-a1"))
    return found if found and found[-1].offset == length else None


def check_times(log: bytes, marks: Any) -> None:
    """Each line was written when it says, and its mark is not from before that."""
    offset, now = 0, time.time()
    for line in log.splitlines(keepends=True):
        mark = next(mark for mark in marks if mark.offset > offset)
        assert float(line) - 0.01 <= mark.time <= now + 1
        offset += len(line)
