"""Samples, scalars, progress and hints: what is found, how much is kept, what it costs."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_training import KERAS, TF1, TF2

from submarine_jobs.directory import JobDirectory
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.metrics import read_metrics
from submarine_jobs.metrics_table import COLUMNS, frame_of, metrics_frame
from submarine_jobs.storage.local import LocalStorage
from submarine_runtime.agent import event_files, samples
from submarine_runtime.agent.event_files import EventFiles
from submarine_runtime.agent.event_message import scalars
from submarine_runtime.agent.gpu_meter import Idleness
from submarine_runtime.agent.hints import hints, memory_sentence
from submarine_runtime.agent.printed import printed_scalars
from submarine_runtime.agent.processes import Tree
from submarine_runtime.agent.progress import Progress
from submarine_runtime.agent.publisher import LogShipper
from submarine_runtime.agent.samples import SampleLog, sample_shipper
from submarine_runtime.agent.store_local import LocalStore
from submarine_runtime.coordinator.advice import advice
from submarine_runtime.protocol.failure import Failure
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State

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
    from submarine_jobs.metrics import _rows

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


def test_scalars_of_both_tensorflows(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/events.out.tfevents.1.host.v2").write_bytes(TF2)
    (tmp_path / "events.out.tfevents.2.host").write_bytes(TF1)
    (tmp_path / "other.txt").write_bytes(TF1)
    found = EventFiles(str(tmp_path)).look()
    assert found == pytest.approx({"train/epoch_loss": 0.3, "train/lr": 0.001, "accuracy": 0.75})
    assert EventFiles(str(tmp_path / "missing")).look() == {}


def test_an_event_file_that_grows_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"")
    files = EventFiles(str(tmp_path))
    seen = []
    for end in range(0, len(TF2) + 1, 7):
        path.write_bytes(TF2[:end])
        value = files.look().get("epoch_loss")
        if value is not None and (not seen or seen[-1] != value):
            seen.append(value)
    assert seen == pytest.approx([0.5, 0.4, 0.3])


def test_pictures_are_passed_over_and_damage_ends_one_file(tmp_path: Path) -> None:
    def record(data: bytes) -> bytes:
        return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"

    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(record(b"\x2a" + os.urandom(3 << 20)) + record(b"\xff" * 40) + TF1)
    files = EventFiles(str(tmp_path))
    for _ in range(3):
        files.look()
    assert files.values == {"accuracy": 0.75}
    path.write_bytes(path.read_bytes() + b"\xff" * 64 + TF2)
    (tmp_path / "events.out.tfevents.2").write_bytes(TF2)
    other = EventFiles(str(tmp_path))
    for _ in range(5):
        other.look()
    assert set(other.values) == {"accuracy", "epoch_loss", "lr"}
    os.mkfifo(tmp_path / "events.out.tfevents.3")
    (tmp_path / "events.out.tfevents.4").symlink_to("/dev/zero")
    assert len(event_files._event_files(str(tmp_path))) == 2


@given(st.binary(max_size=400))
def test_no_bytes_make_decoding_fail(data: bytes) -> None:
    for tag, value in scalars(data):
        assert isinstance(tag, str)
        assert isinstance(value, float)


def test_a_flood_of_scalars_is_read_within_a_budget(tmp_path: Path) -> None:
    def event(tag: bytes, value: float) -> bytes:
        inner = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", value)
        summary = b"\x0a" + bytes([len(inner)]) + inner
        data = b"\x10\x05\x2a" + bytes([len(summary)]) + summary
        return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"

    rare = event(b"validation_accuracy", 0.5)
    flood = b"".join(event(b"batch_loss", n) for n in range(15000))
    (tmp_path / "events.out.tfevents.1").write_bytes(rare + flood)
    took = []
    for _ in range(5):  # the best of some: a busy machine's caches are cold
        files = EventFiles(str(tmp_path))
        began = time.thread_time()
        files.look()
        took.append(time.thread_time() - began)
    assert min(took) < 0.2
    assert files.values == {"validation_accuracy": 0.5, "batch_loss": 14999.0}


def test_scalars_in_what_keras_prints(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_bytes(KERAS)
    progress = Progress((str(log),))
    assert progress.look() == 1.0
    assert progress.scalars == {
        "accuracy": 0.5625,
        "loss": 0.6739,
        "val_accuracy": 0.5,
        "val_loss": 0.6904,
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"45/938 [====>...] - ETA: 3s - loss: 0.31 - acc: 9.1e-1", {"loss": 0.31, "acc": 0.91}),
        (b"938/938 - 3s - 3ms/step - accuracy: 0.91 - loss: nan", {"accuracy": 0.91}),
        (b"loss: 0.31 - accuracy: 0.91\nand now the next", {"loss": 0.31, "accuracy": 0.91}),
        (b"\r 45%|####  | 45/100 [00:10<00:12, 4.32it/s, loss=0.25, lr=1e-4]", {"loss": 0.25}),
        (b"the loss: 0.31 is fine\nerror: 7 - is not\nhost: 10.0.0.1", {}),
        (b"12/31/2026 10:00:00 - INFO: 3 files", {}),
    ],
)
def test_scalars_in_lines(text: bytes, found: dict[str, float]) -> None:
    got = printed_scalars(text)
    assert {name: got[name] for name in found} == found
    if not found:
        assert got == {}


def test_a_line_cut_anywhere_by_a_look_names_no_other_scalar(tmp_path: Path) -> None:
    line = b"45/938 [====>...] - ETA: 3s - loss: 0.31 - accuracy: 0.91\n"
    text = b"x" * 600 + b"\n" + 20 * line
    for cut in range(600, 600 + 2 * len(line)):
        log = tmp_path / str(cut)
        log.write_bytes(text[:cut])
        progress = Progress((str(log),))
        progress.look()
        log.write_bytes(text)
        progress.look()
        assert progress.scalars == {"loss": 0.31, "accuracy": 0.91}


def test_progress_of_bars(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_bytes(b"")
    progress = Progress((str(log),))

    def bar(name: str, done: int, total: int) -> float | None:
        with log.open("ab") as file:
            share = 100 * done // total
            file.write(f"\r{name}: {share:3}%|████▌     | {done}/{total} [00:10<00:12]".encode())
        return progress.look()

    assert progress.look() is None
    assert bar("data", 5, 10) == 0.5
    assert bar("data", 10, 10) == 1.0
    assert bar("epochs", 0, 4) == 0.0
    assert bar("epochs", 1, 4) == 0.25
    for epoch in (2, 3):
        assert bar("steps", 90, 100) == (epoch - 1) / 4
        assert bar("steps", 0, 100) == (epoch - 1) / 4
        assert bar("epochs", epoch, 4) == epoch / 4
    only = Progress((str(log),))
    log.write_bytes("\r 90%|███ | 9/10 [0]\r  0%|  | 0/10 [0]".encode())
    assert only.look() is None  # one bar an epoch: nobody knows how many epochs there are


def test_progress_of_a_bar_an_epoch_and_of_a_scalar(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_bytes("Epoch 3/4:  50%|█████     | 50/100 [00:10<00:12,  4.32it/s]".encode())
    assert Progress((str(log),)).look() == pytest.approx(0.625)
    inner = b"\x0a\x08progress\x15" + struct.pack("<f", 0.75)
    data = b"\x2a" + bytes([len(inner) + 2, 0x0A, len(inner)]) + inner
    record = struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"
    (tmp_path / "events.out.tfevents.1").write_bytes(record)
    assert Progress((str(log),), str(tmp_path)).look() == 0.75


def test_hints_say_what_to_ask_for() -> None:
    def of(**numbers: object) -> list[str]:
        usual = {"asked": 8192.0, "peak": 1229.0, "seconds": 600.0, "succeeded": True}
        return hints(**{**usual, **numbers})  # type: ignore[arg-type]

    assert of() == ["Memory: used 1.2 of 8 GB: ask for 2 GB."]
    assert of(peak=5000.0) == of(seconds=5.0) == of(succeeded=False) == of(asked=None) == []
    assert of(asked=512.0, peak=100.0) == []
    idle = Idleness("GPU-3f", 2.1, 600.0)
    assert of(peak=5000.0, gpus=[idle, Idleness("GPU-b", 60.0, 600.0)]) == [
        "GPU-3f was 2 % busy on average over 10 min: let the program use it, or ask for fewer GPUs."
    ]
    assert of(peak=5000.0, gpus=[Idleness("GPU-3f", 0.0, 60.0)]) == []
    full = Failure(
        "torch.OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 79.18 "
        "GiB of which 588.19 MiB is free.",
    )
    [of_device] = of(succeeded=False, failure=full)
    assert "The GPU's own memory was full, which --memory does not change" in of_device
    assert of(succeeded=False, failure=Failure("MemoryError", "")) == []
    assert memory_sentence(4200, 4096) == "The program used 4.1 of 4 GB: ask for 6 GB."
    assert memory_sentence(4100, 4096) == "The program used 4.00 of 4 GB: ask for 6 GB."
    assert memory_sentence(230, 200) == "The program used 230 of 200 MiB: ask for 384 MiB."


def test_advice_for_a_role_is_what_its_hungriest_task_used() -> None:
    def task(index: int, peak: float | None, role: str = "worker") -> TaskRecord:
        name = f"{role}:{index}"
        return TaskRecord(name, role, index, started=0.0, finished=99.0, memory_peak=peak)

    def of(*tasks: TaskRecord, told: dict[str, list[str]] | None = None) -> list[str]:
        requested = {"worker": {"memory": 8192}, "ps": {"memory": 4096}}
        record = JobRecord(
            "j", "j", State.SUCCEEDED, tasks=list(tasks), resources={"requested": requested}
        )
        return advice(record, told or {})

    assert of(task(0, 1229.0), task(1, 100.0)) == [
        "worker: Memory: used 1.2 of 8 GB: ask for 2 GB."
    ]
    assert of(task(0, 1229.0), task(1, 7000.0)) == of(task(0, 1229.0), task(1, None)) == []
    told = {f"worker:{n}": ["Memory: x.", "GPU-a was idle."] for n in range(30)}
    found = of(task(0, 7000.0), task(0, 100.0, "ps"), told=told)
    assert found[:2] == [
        "ps: Memory: used 0.1 of 4 GB: ask for 192 MiB.",
        "worker:0: GPU-a was idle.",
    ]
    assert len(found) == 10
    assert found[-1] == "And 22 more like these."


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
        tree = Tree(parent.pid)
        before = tree.sample().memory
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        assert tree.glance() > before + 75
        assert tree.peak > before + 75
        took = []
        for _ in range(50):
            began = time.thread_time()
            tree.glance()
            took.append(time.thread_time() - began)
        assert sorted(took)[25] < 0.0005
        parent.stdin.close()
