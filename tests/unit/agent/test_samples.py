"""Samples of a task: what is measured, how much of it is kept, and how it is read back."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.access import JobDirectory
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.outputs import metrics_frame, read_metrics
from submarine_jobs.outputs.data_frame import COLUMNS, frame_of
from submarine_jobs.storage import LocalStorage
from submarine_runtime.agent.measurement import SampleLog, sample_shipper, samples
from submarine_runtime.agent.shipping import LogShipper
from submarine_runtime.processes import ProcessTree, usage as processes
from submarine_runtime.storage import LocalStore

WEEK = 7 * 24 * 3600


class Clock(SimpleNamespace):
    """Stands in for the ``time`` module of ``samples`` alone."""

    def __init__(self) -> None:
        super().__init__(now=1000.0)

    def monotonic(self) -> float:
        return float(self.now)

    def time(self) -> float:
        return 1.7e9 + float(self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (samples, sys.modules[LogShipper.__module__]):
        monkeypatch.setattr(module, "time", made)
    return made


def directory(path: Path) -> JobDirectory:
    return JobDirectory(LocalStorage(), str(path))


def ship(log: SampleLog, job: Path, task: str = "worker:0", epoch: int = 1, n: int = 1) -> None:
    sample_shipper(LocalStore(str(job)), log.path, task, epoch, n, 10.0).ship_rest()


@pytest.mark.slow
def test_a_week_of_samples_stays_below_two_megabytes(tmp_path: Path, clock: Clock) -> None:
    log = SampleLog(str(tmp_path / "s"), "worker:0", 1, 1, [f"GPU-{n}" for n in range(8)])
    chance = random.Random(1)
    for second in (*range(0, 7200, 2), *range(7200, WEEK, 30)):
        clock.now = 1000.0 + second
        readings = [(chance.random() * 100, 60000.0)] * 8
        loss = {f"metric_{n}": chance.random() for n in range(3)}
        log.add(second * 3.0, 5000.0 + (second == 259200), readings, second / WEEK, loss)
    ship(log, tmp_path)
    assert os.path.getsize(log.path) < 2_000_000
    rows = read_metrics(directory(tmp_path))
    times = [row.seconds for row in rows]
    first_hour = [b - a for a, b in itertools.pairwise(times) if b < 3600]
    assert set(first_hour) == {2.0}
    assert max(b - a for a, b in itertools.pairwise(times)) < 0.01 * WEEK
    # What is folded into a line keeps its largest memory and its mean percents.
    assert max(row.memory or 0 for row in rows) == 5001
    assert all(row.cpu_percent == 300 for row in rows[1:])
    last = [row.gpu_percent or 0 for row in rows[-100:]]
    assert 45 < sum(last) / 100 < 55


@pytest.mark.slow
def test_segments_of_samples_stay_few(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of files, and no power cut
    log = SampleLog(str(tmp_path / "s"), "worker:0", 1, 1)
    store = LocalStore(str(tmp_path))
    shipper = sample_shipper(store, log.path, "worker:0", 1, 1, 10.0)
    after = {}
    for second in (*range(0, 7200, 5), *range(7200, WEEK, 60)):
        clock.now = 1000.0 + second
        log.add(second, 100.0)
        if shipper.due():
            shipper.ship()
        after[second] = store.files
    assert after[30] >= 2
    assert after[3600] < 100
    assert store.files < 800
    assert len(read_metrics(directory(tmp_path))) > 3000


def test_rows_of_several_tasks_and_attempts(tmp_path: Path, clock: Clock) -> None:
    for task, epoch, attempt in [
        ("worker:10", 1, 1),
        ("worker:2", 1, 2),
        ("ps:0", 2, 1),
        ("worker:2", 1, 1),
    ]:
        log = SampleLog(
            str(tmp_path / f"{task}{attempt}"), task, epoch, attempt, ["GPU-a", "GPU-b"]
        )
        log.add(0.0, 10.0)
        clock.now += 2
        gpus = [(50.0, 100.0), (None, 300.0)]
        log.add(1.0, 20.0, gpus, 0.5, {"loss": 0.123456789, "lr": 1e-3})
        clock.now += 2
        log.add(1.0, 20.0, gpus, 0.5, {"loss": math.nan, "lr": 1e-3}, last=True)
        ship(log, tmp_path, task, epoch, attempt)
    rows = read_metrics(directory(tmp_path))
    assert [(r.task, r.epoch, r.attempt) for r in rows[::3]] == [
        ("ps:0", 2, 1),
        ("worker:2", 1, 1),
        ("worker:2", 1, 2),
        ("worker:10", 1, 1),
    ]
    first, second, third = read_metrics(directory(tmp_path), "ps:0")
    assert (first.cpu_percent, first.memory, first.gpu_percent, first.progress) == (
        None,
        10.0,
        None,
        None,
    )
    assert (second.cpu_percent, second.gpu_percent, second.gpu_memory) == (50.0, 50.0, 400.0)
    assert second.scalars == {"loss": 0.123457, "lr": 0.001}
    assert second.gpus[1] == ("GPU-b", None, 300.0)
    assert third.progress == 0.5
    assert math.isnan(third.scalars["loss"])
    assert third.scalars["lr"] == 0.001
    assert third.time - second.time == pytest.approx(2.0)
    assert read_metrics(directory(tmp_path), "worker:7") == []
    with pytest.raises(UsageError, match="not a task"):
        read_metrics(directory(tmp_path), "../x")


@pytest.mark.slow
def test_a_frame_has_times_and_a_column_a_scalar(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SampleLog(str(tmp_path / "s"), "worker:0", 1, 1)
    log.add(0.0, 10.0)
    clock.now += 2
    log.add(1.0, 20.0, (), 0.25, {"loss": 0.5, "memory": 7.0})
    ship(log, tmp_path)
    frame = metrics_frame(directory(tmp_path))
    assert list(frame.columns) == [*COLUMNS, "loss", "memory_"]
    assert list(frame["cpu_percent"].dropna()) == [50.0]
    assert frame["memory"].max() == 20.0
    assert str(frame["time"].dtype).endswith("UTC]")
    assert (frame["time"].diff().dt.total_seconds().iloc[1]) == 2.0
    assert list(frame_of([]).columns) == list(COLUMNS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SubmarineError, match="read_metrics"):
        frame_of([])


@given(st.binary(max_size=300), st.integers(0, 400))
def test_damaged_samples_cost_only_themselves(noise: bytes, place: int) -> None:
    from submarine_jobs.outputs.metrics import _rows

    good = b'{"v":1,"start":100.0,"devices":[]}\n{"t":2.0,"m":5}\n{"t":4.0,"m":6,"s":{"a":1}}\n'
    damaged = good[:place] + b"\n" + noise + b"\n" + good[place:]
    for row in _rows(damaged, "worker:0", 1, 1):
        assert math.isfinite(row.time)
    assert len(list(_rows(good + noise + b"\n", "worker:0", 1, 1))) >= 2


def test_a_full_disk_loses_lines_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    place = tmp_path / "there"
    place.mkdir()
    log = SampleLog(str(place / "s"), "worker:0", 1, 1)
    log.add(0.0, 1.0)
    os.rename(place, tmp_path / "away")
    clock.now += 2
    log.add(0.0, 2.0)
    os.rename(tmp_path / "away", place)
    clock.now += 2
    log.add(0.0, 3.0)
    lines = [json.loads(line) for line in (place / "s").read_text().split("\n") if line]
    assert [line.get("m") for line in lines] == [None, 1, 3]


def test_a_glance_finds_memory_of_new_children() -> None:
    hold = "import sys; b = bytearray(80 << 20); print(flush=True); sys.stdin.read()"
    code = (
        "import subprocess, sys; sys.stdin.readline();"
        f"p = subprocess.Popen([sys.executable, '-S', '-c', {hold!r}]); p.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        tree = ProcessTree(parent.pid)
        before = tree.sample().memory
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        assert tree.quick_memory() > before + 75
        assert tree.peak > before + 75
        took = []
        for _ in range(50):
            began = time.thread_time()
            tree.quick_memory()
            took.append(time.thread_time() - began)
        assert sorted(took)[25] < 0.0005
        parent.stdin.close()


def test_memory_that_was_taken_and_given_back_just_now_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = (
        "import sys\nprint(1, flush=True)\nsys.stdin.readline()\n"
        "x = bytearray(b'x') * (150 << 20)\ndel x\nprint(1, flush=True)\nsys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        tree = ProcessTree(program.pid)
        assert program.stdout.readline()
        assert tree.sample().memory < 100
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline()
        assert tree.quick_memory() < 100
        assert tree.recent_peak() > 150
        monkeypatch.setattr(processes, "RECENT", 600.0)
        tree.sample()
        tree.sample()
        assert tree.recent_peak() > 150  # YARN's signal may come after the next sample
        monkeypatch.setattr(processes, "RECENT", 0.0)
        assert tree.recent_peak() < 100  # it was there, and nothing has ended the program for it
        program.kill()
