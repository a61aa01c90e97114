"""The chief's checkpoints in the directory of an evaluator: copies, their order and removal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_runtime.agent.sync import ChiefCheckpoints
from submarine_runtime.snapshots import SnapshotWriter, scan_directory
from submarine_runtime.storage import LocalStore
from tests.local.data.data_files import reader, seen, write

INTERVAL = 10.0


class Pair:
    """A chief that takes snapshots, and an evaluator that receives them."""

    def __init__(self, root: Path) -> None:
        self.work, self.place = root / "work", root / "output/checkpoints"
        self.job = root / "job"
        self.work.mkdir()
        self.place.mkdir(parents=True)
        self.job.mkdir()
        self.store = LocalStore(str(self.job))
        self.told: list[str] = []
        self.taking = self.attempt("e1-a1")
        self.copies = self.evaluator()

    def attempt(self, name: str) -> SnapshotWriter:
        return SnapshotWriter(
            self.store, f"snapshots/chief-0/{name}", "checkpoints", reader(self.work)
        )

    def evaluator(self) -> ChiefCheckpoints:
        return ChiefCheckpoints(
            self.store,
            str(self.place),
            "chief:0",
            INTERVAL,
            5.0,
            lambda kind, detail: self.told.append(detail),
        )

    def snapshot(self, files: dict[str, bytes]) -> None:
        for path in seen(self.work):
            (self.work / path).unlink()
        write(self.work, files)
        self.taking.publish(seen(self.work))

    def there(self) -> dict[str, bytes]:
        paths = [path for path in self.place.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.place)): path.read_bytes() for path in paths}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_each_snapshot_of_the_chief_is_copied_with_the_state_file_last(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    replace = os.replace

    def noted(source: str, target: str) -> None:
        replace(source, target)
        if target.startswith(f"{pair.place}/"):
            order.append(Path(target).name)

    monkeypatch.setattr(os, "replace", noted)
    pair.copies.update(0.0)
    assert pair.there() == {}
    for number in (1, 2):
        files = {"checkpoint": b"names %d" % number, f"ckpt-{number}.index": b"i"}
        files[f"ckpt-{number}.data-00000-of-00001"] = b"d"
        order.clear()
        pair.snapshot(files)
        pair.copies.update(float(number))
        assert files.items() <= pair.there().items()
        assert order[2] == "checkpoint"
        assert pair.copies.own(scan_directory(str(pair.place))) == {}


def test_a_new_directory_appears_as_a_whole(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[list[str]] = []
    rename = os.rename

    def noted(source: str, target: str) -> None:
        rename(source, target)
        if target.startswith(str(pair.place) + "/"):
            moved.append(sorted(os.listdir(target)))

    monkeypatch.setattr(os, "rename", noted)
    files = {"run/checkpoint-5/model.bin": b"m", "run/checkpoint-5/trainer_state.json": b"t"}
    pair.snapshot(files)
    pair.copies.update(0.0)
    assert moved == [["checkpoint-5"]]
    files |= {f"run/checkpoint-10/{name}": b"2" for name in ("model.bin", "trainer_state.json")}
    pair.snapshot(files)
    pair.copies.update(1.0)
    assert moved[1] == ["model.bin", "trainer_state.json"]
    assert pair.there() == files


def test_what_the_chief_has_deleted_goes_one_interval_later_unless_it_is_open(pair: Pair) -> None:
    pair.snapshot({"1/a": b"1", "1/b": b"1", "2": b"2"})
    pair.copies.update(0.0)
    pair.snapshot({"2": b"2"})
    pair.copies.update(5.0)
    pair.copies.update(5.0 + INTERVAL - 0.1)
    assert set(pair.there()) == {"1/a", "1/b", "2"}
    with open(pair.place / "1/b", "rb"):
        pair.copies.update(5.0 + INTERVAL)
        assert set(pair.there()) == {"1/b", "2"}
    pair.copies.update(6.0 + INTERVAL)
    assert set(pair.there()) == {"2"}
    assert not (pair.place / "1").exists()


def test_files_of_the_evaluator_are_neither_overwritten_nor_deleted(pair: Pair) -> None:
    write(pair.place, {"checkpoint": b"mine", "best/mine": b"mine"})
    pair.snapshot({"checkpoint": b"the chief's", "best/ckpt-1": b"1", "ckpt-1": b"1", "log": b"1"})
    pair.copies.update(0.0)
    pair.copies.update(1.0)
    assert pair.there()["checkpoint"] == b"mine"
    assert pair.there()["best/ckpt-1"] == b"1"
    assert [sentence for sentence in pair.told if "'checkpoint'" in sentence] == pair.told
    assert len(pair.told) == 1
    with open(pair.place / "log", "ab") as file:
        file.write(b"the evaluator's")
    assert set(pair.copies.own(scan_directory(str(pair.place)))) == {
        "checkpoint",
        "best/mine",
        "log",
    }
    assert pair.copies.holds(str(pair.place / "ckpt-1"))
    assert not pair.copies.holds(str(pair.place / "log"))
    pair.snapshot({"ckpt-2": b"2"})
    pair.copies.update(2.0)
    pair.copies.update(2.0 + INTERVAL)
    assert pair.there() == {
        "checkpoint": b"mine",
        "best/mine": b"mine",
        "log": b"1the evaluator's",
        "ckpt-2": b"2",
    }


def test_a_restart_of_either_side_goes_on(pair: Pair) -> None:
    pair.snapshot({"ckpt-1": b"1", "ckpt-2": b"2"})
    pair.copies.update(0.0)
    pair.copies = pair.evaluator()
    assert pair.copies.own(scan_directory(str(pair.place))) == {}
    pair.taking = pair.attempt("e2-a1")
    pair.copies.update(1.0)
    pair.snapshot({"ckpt-1": b"1"})
    pair.copies.update(2.0)
    pair.copies.update(2.0 + INTERVAL)
    assert pair.there() == {"ckpt-1": b"1"}


def test_a_damaged_snapshot_is_passed_over(pair: Pair) -> None:
    pair.snapshot({"ckpt-1": b"1"})
    pair.snapshot({"ckpt-2": b"2"})
    (newest,) = (pair.job / "snapshots/chief-0/e1-a1").glob("*000002.pack")
    newest.write_bytes(b"x")
    pair.copies.update(0.0)
    assert pair.there() == {"ckpt-1": b"1"}
