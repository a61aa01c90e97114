"""The network between agents and coordinator goes away: not long enough to be lost, and longer."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from submarine_jobs.model import read_record
from submarine_runtime.protocol import JobRecord, State

SCRIPT = Path(__file__).with_name("cut_network.py")


def run_with_cut(directory: Path, seconds: float) -> JobRecord:
    """The record of a job whose network was away for so long, in a namespace of its own."""
    as_root = [] if os.geteuid() == 0 else ["-r"]
    done = subprocess.run(
        ["unshare", "-n", *as_root, sys.executable, str(SCRIPT), str(directory), str(seconds)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return read_record(done.stdout)


def diary(directory: Path, name: str) -> list[tuple[float, int, int]]:
    """Time, process and step of each step that a task made, in order of writing."""
    words = [line.split() for line in (directory / "diaries" / name).read_text().splitlines()]
    return [(float(when), int(pid), int(step)) for when, pid, step in words]


def assert_one_writer_at_a_time(entries: list[tuple[float, int, int]]) -> int:
    """No process writes again after another has begun; how many there were."""
    assert [entry[0] for entry in entries] == sorted(entry[0] for entry in entries)
    changes = [pid for (_, before, _), (_, pid, _) in pairwise(entries) if pid != before]
    writers = [entries[0][1], *changes]
    assert len(writers) == len(set(writers)), writers
    return len(writers)


@pytest.mark.full
def test_a_short_cut_is_not_noticed_by_the_programs(tmp_path: Path) -> None:
    record = run_with_cut(tmp_path, 20)
    assert record.state is State.SUCCEEDED, (record.reason, record.detail)
    assert record.epoch == 1
    for name in ("worker-0", "worker-1"):
        entries = diary(tmp_path, name)
        assert assert_one_writer_at_a_time(entries) == 1
        assert entries[-1][2] == 400


@pytest.mark.full
def test_a_long_cut_restarts_the_tasks_and_nothing_is_written_twice(tmp_path: Path) -> None:
    record = run_with_cut(tmp_path, 120)
    assert record.state is State.SUCCEEDED, (record.reason, record.detail)
    assert all(task.restarts >= 1 for task in record.tasks)
    for name in ("worker-0", "worker-1"):
        entries = diary(tmp_path, name)
        assert assert_one_writer_at_a_time(entries) >= 2
        assert entries[-1][2] == 400
        # During the cut no task wrote for long: lost_after is 25 s.
        pauses = [after[0] - before[0] for before, after in pairwise(entries)]
        assert max(pauses) > 60
