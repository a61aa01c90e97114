"""Scalars of a job with their steps, from event files that TensorFlow wrote."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.outputs import ScalarPoint, event_scalars, read_event_scalars
from submarine_jobs.storage import LocalStorage
from tests.unit.agent.recorded_training import TF1, TF2


def shortened(points: list[ScalarPoint]) -> list[tuple[str, int, float]]:
    return [(point.name, point.step, round(point.value, 6)) for point in points]


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(LocalStorage(), str(tmp_path))


#: Name, step and value.
TRAIN = [
    entry
    for step, loss in enumerate((0.5, 0.4, 0.3))
    for entry in (("train/epoch_loss", step, loss), ("train/lr", step, 0.001))
]


def test_scalars_have_their_steps_and_times(
    directory: JobDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_event_scalars(directory) == []
    (tmp_path / "tensorboard/train").mkdir(parents=True)
    (tmp_path / "tensorboard/train/events.out.tfevents.1.host.v2").write_bytes(TF2)
    (tmp_path / "tensorboard/events.out.tfevents.2.host").write_bytes(TF1)
    (tmp_path / "tensorboard/other.txt").write_bytes(TF1)
    found = read_event_scalars(directory)
    accuracy = [one for one in shortened(found) if one[0] == "accuracy"]
    assert accuracy == [("accuracy", 0, 0.25), ("accuracy", 1, 0.75)]
    assert [one for one in shortened(found) if one[0] != "accuracy"] == TRAIN
    assert all(1.5e9 < point.time < 2.5e9 for point in found)
    # Small reads give the same; a limit is kept.
    monkeypatch.setattr(event_scalars, "_BLOCK", 512)
    assert read_event_scalars(directory) == found
    monkeypatch.setattr(event_scalars, "MAX_POINTS", 3)
    assert read_event_scalars(directory) == found[:3]
    monkeypatch.setattr(event_scalars, "MAX_BYTES", len(TF1))
    assert read_event_scalars(directory) == [p for p in found if p.name == "accuracy"][:3]


def test_pictures_and_damage_are_passed_over(directory: JobDirectory, tmp_path: Path) -> None:
    def record(data: bytes) -> bytes:
        return struct.pack("<QI", len(data), 0) + data + b"\0\0\0\0"

    (tmp_path / "tensorboard").mkdir()
    path = tmp_path / "tensorboard/events.out.tfevents.1"
    path.write_bytes(record(b"\x2a" + b"p" * (5 << 20)) + record(b"\xff" * 40) + TF1 + TF2[:40])
    assert [one[2] for one in shortened(read_event_scalars(directory))] == [0.25, 0.75]
    path.write_bytes(b"\xff" * 64 + TF1)
    assert read_event_scalars(directory) == []
