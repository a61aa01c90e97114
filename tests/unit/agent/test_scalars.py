"""Scalars and progress: found in event files and in what programs print, whatever they hold."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from submarine_runtime.agent.measurement import scalar_files, scalars
from submarine_runtime.agent.measurement.log_scalars import printed_scalars
from submarine_runtime.agent.measurement.progress import Progress
from submarine_runtime.agent.measurement.scalar_files import ScalarFiles
from tests.unit.agent.recorded_training import KERAS, TF1, TF2


def test_scalars_of_both_tensorflows(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/events.out.tfevents.1.host.v2").write_bytes(TF2)
    (tmp_path / "events.out.tfevents.2.host").write_bytes(TF1)
    (tmp_path / "other.txt").write_bytes(TF1)
    found = ScalarFiles(str(tmp_path)).update()
    assert found == pytest.approx({"train/epoch_loss": 0.3, "train/lr": 0.001, "accuracy": 0.75})
    assert ScalarFiles(str(tmp_path / "missing")).update() == {}


def test_an_event_file_that_grows_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"")
    files = ScalarFiles(str(tmp_path))
    seen: list[float] = []
    for end in range(0, len(TF2) + 1, 7):
        path.write_bytes(TF2[:end])
        value = files.update().get("epoch_loss")
        if value is not None and (not seen or seen[-1] != value):
            seen.append(value)
    assert seen == pytest.approx([0.5, 0.4, 0.3])


def test_pictures_are_passed_over_and_damage_ends_one_file(tmp_path: Path) -> None:
    def record(data: bytes) -> bytes:
        return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"

    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(record(b"\x2a" + os.urandom(3 << 20)) + record(b"\xff" * 40) + TF1)
    files = ScalarFiles(str(tmp_path))
    for _ in range(3):
        files.update()
    assert files.values == {"accuracy": 0.75}
    path.write_bytes(path.read_bytes() + b"\xff" * 64 + TF2)
    (tmp_path / "events.out.tfevents.2").write_bytes(TF2)
    other = ScalarFiles(str(tmp_path))
    for _ in range(5):
        other.update()
    assert set(other.values) == {"accuracy", "epoch_loss", "lr"}
    os.mkfifo(tmp_path / "events.out.tfevents.3")
    (tmp_path / "events.out.tfevents.4").symlink_to("/dev/zero")
    assert len(scalar_files._scalar_files(str(tmp_path))) == 2


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
        files = ScalarFiles(str(tmp_path))
        began = time.thread_time()
        files.update()
        took.append(time.thread_time() - began)
    assert min(took) < 0.2
    assert files.values == {"validation_accuracy": 0.5, "batch_loss": 14999.0}


def test_scalars_in_what_keras_prints(tmp_path: Path) -> None:
    log = tmp_path / "stdout"
    log.write_bytes(KERAS)
    progress = Progress((str(log),))
    assert progress.update() == 1.0
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
        progress.update()
        log.write_bytes(text)
        progress.update()
        assert progress.scalars == {"loss": 0.31, "accuracy": 0.91}


def test_progress_of_bars(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_bytes(b"")
    progress = Progress((str(log),))

    def bar(name: str, done: int, total: int) -> float | None:
        with log.open("ab") as file:
            share = 100 * done // total
            file.write(f"\r{name}: {share:3}%|████▌     | {done}/{total} [00:10<00:12]".encode())
        return progress.update()

    assert progress.update() is None
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
    assert only.update() is None  # the number of epochs is not known


def test_progress_of_a_bar_an_epoch_and_of_a_scalar(tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    log.write_bytes("Epoch 3/4:  50%|█████     | 50/100 [00:10<00:12,  4.32it/s]".encode())
    assert Progress((str(log),)).update() == pytest.approx(0.625)
    inner = b"\x0a\x08progress\x15" + struct.pack("<f", 0.75)
    data = b"\x2a" + bytes([len(inner) + 2, 0x0A, len(inner)]) + inner
    record = struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"
    (tmp_path / "events.out.tfevents.1").write_bytes(record)
    assert Progress((str(log),), str(tmp_path)).update() == 0.75
