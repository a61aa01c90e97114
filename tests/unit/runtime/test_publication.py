"""Publication of ``--save-output``: names of parts, stale files, and interruptions at each step."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.model import JobSpec, Role
from submarine_jobs.outputs import settle_outputs
from submarine_jobs.storage import LocalStorage
from submarine_runtime.protocol import NamedOutput
from submarine_runtime.publication import (
    MODEL_MANIFEST,
    Published,
    list_path,
    own_path,
    part_path,
    publish_outputs,
    staging_path,
)
from submarine_runtime.storage import LocalStore, StoreError

JOB = "test-20261128-7f3a"


@pytest.mark.parametrize(
    ("path", "one", "several"),
    [
        ("a.csv", "a.csv", "worker-1-a.csv"),
        ("day=1/a b.csv", "day=1/a b.csv", "day=1/worker-1-a b.csv"),
        ("_metadata", "_metadata", "_worker-1-metadata"),
        ("x/.crc", "x/.crc", "x/.worker-1-crc"),
        ("worker-0-a", "worker-0-a", "worker-1-worker-0-a"),
    ],
)
def test_the_name_of_a_part_names_its_task(path: str, one: str, several: str) -> None:
    assert part_path(path, "worker:1", several=False) == one
    assert part_path(path, "worker:1", several=True) == several
    assert own_path(several, "worker:1", several=True) == path
    assert own_path(several, "worker:11", several=True) is None
    assert own_path(several, "worker:0", several=True) is None


class Interrupted(BaseException):
    """The process was killed."""


class CountingStore(LocalStore):
    """A job directory whose process is killed before one of its changes, or whose reply is lost."""

    def __init__(self, root: str, kill_at: int = -1, lose_at: int = -1) -> None:
        super().__init__(root)
        self.kill_at, self.lose_at, self.changes = kill_at, lose_at, 0

    def _change(self, change: Any, *arguments: Any) -> Any:
        number, self.changes = self.changes, self.changes + 1
        if number == self.kill_at:
            raise Interrupted
        value = change(*arguments)
        if number == self.lose_at:
            raise StoreError("no answer in time", transient=True)
        return value

    def move(self, path: str, to: str) -> None:
        self._change(super().move, path, to)

    def delete(self, path: str, recursive: bool = False) -> None:
        self._change(super().delete, path, recursive)

    def publish(self, path: str, data: bytes) -> None:
        self._change(super().publish, path, data)


def again(action: Any) -> Any:
    """Repeat a call after a transient error."""
    for _ in range(5):
        try:
            return action()
        except StoreError as error:
            if not error.transient:
                raise
    raise AssertionError("the error does not pass")


class Place:
    """A job of two tasks that has staged its files for a target with old ones."""

    def __init__(self, root: Path, mode: str = "overwrite") -> None:
        self.root, self.target = root, root / "pred"
        self.spec = JobSpec(
            "test",
            "local",
            roles=(Role("worker", 2),),
            outputs=(NamedOutput("p", str(self.target), mode),),
        )
        self.job = root / "job"
        self.job.mkdir(parents=True)
        self.staging = Path(staging_path(str(self.target), JOB))
        self.staging.mkdir()
        for n in range(2):
            name = f"worker-{n}-a.csv"
            (self.staging / name).write_text("new")
            listed = self.job / list_path("p", f"worker:{n}")
            listed.parent.mkdir(parents=True, exist_ok=True)
            listed.write_text(json.dumps({"epoch": 2, "attempt": 1, "files": {name: 3}}))
        (self.staging / "worker-1-lost.csv").write_text("of an earlier attempt")

    def publish(self, store: LocalStore, tasks: Any = None) -> Published:
        tasks = tasks or {"worker:0": (2, 1), "worker:1": (2, 1)}
        return publish_outputs(store, self.spec.outputs, self.spec, JOB, tasks, again)

    def visible(self) -> list[str] | None:
        return sorted(p.name for p in self.target.iterdir()) if self.target.exists() else None

    def hidden(self) -> list[str]:
        return [path.name for path in self.root.iterdir() if path.name.startswith(".")]

    def settle(self) -> None:
        directory: Any = SimpleNamespace(storage=LocalStorage(), path=str(self.job))
        settle_outputs(directory, self.spec, JOB)


NEW = ["_SUCCESS", "worker-0-a.csv", "worker-1-a.csv"]
OLD = ["old.csv"]


def replaced(root: Path) -> Place:
    place = Place(root)
    place.target.mkdir()
    (place.target / "old.csv").write_text("old")
    return place


def changes(root: Path) -> int:
    store = CountingStore(str(root / "job"))
    assert not replaced(root).publish(store).failure
    return store.changes


def test_a_killed_publication_leaves_old_or_new_files_and_a_further_one_completes_it(
    tmp_path: Path,
) -> None:
    count = changes(tmp_path / "whole")
    assert count >= 6
    states = []
    for number in range(count):
        place = replaced(tmp_path / f"again-{number}")
        with pytest.raises(Interrupted):
            place.publish(CountingStore(str(place.job), kill_at=number))
        states.append(place.visible())
        done = place.publish(LocalStore(str(place.job)))
        assert not done.failure
        assert (done.outputs[0].files, done.outputs[0].bytes) == (2, 6)
        assert place.visible() == NEW
        assert not place.hidden()
    assert all(state in (OLD, NEW, None) for state in states)
    assert states.count(None) == 1


def test_the_client_that_closes_a_killed_job_completes_or_discards_its_publication(
    tmp_path: Path,
) -> None:
    found = []
    for number in range(changes(tmp_path / "whole")):
        place = replaced(tmp_path / f"settled-{number}")
        with pytest.raises(Interrupted):
            place.publish(CountingStore(str(place.job), kill_at=number))
        place.settle()
        found.append(place.visible())
        assert not place.hidden()
    assert found == sorted(found, key=lambda state: state == NEW)
    assert {tuple(state or ()) for state in found} == {tuple(OLD), tuple(NEW)}


def test_a_lost_reply_to_a_step_does_not_change_the_result(tmp_path: Path) -> None:
    for number in range(changes(tmp_path / "whole")):
        place = replaced(tmp_path / f"lost-{number}")
        assert not place.publish(CountingStore(str(place.job), lose_at=number)).failure
        assert place.visible() == NEW
        assert not place.hidden()


@pytest.mark.parametrize("mode", ["", "append-run"])
def test_a_filled_target_is_not_replaced(tmp_path: Path, mode: str) -> None:
    place = Place(tmp_path / "filled", mode)
    place.target.mkdir()
    (place.target / "old.csv").write_text("old")
    done = place.publish(LocalStore(str(place.job)))
    assert "was filled while the job ran" in done.failure
    assert place.visible() == OLD
    assert place.staging.exists()


def test_an_empty_target_is_used(tmp_path: Path) -> None:
    place = Place(tmp_path / "empty", "")
    place.target.mkdir()
    assert not place.publish(LocalStore(str(place.job))).failure
    assert place.visible() == NEW


def test_files_of_a_task_that_did_not_succeed_are_not_published(tmp_path: Path) -> None:
    place = Place(tmp_path / "one", "")
    assert not place.publish(LocalStore(str(place.job)), {"worker:0": (2, 1)}).failure
    assert place.visible() == ["_SUCCESS", "worker-0-a.csv"]


def test_a_list_of_an_earlier_attempt_is_not_published(tmp_path: Path) -> None:
    place = Place(tmp_path / "early", "")
    done = place.publish(LocalStore(str(place.job)), {"worker:0": (3, 1)})
    assert done.failure == "--save-output p: the files of worker:0 were not saved."
    assert place.visible() is None


class ModelPlace(Place):
    """A job of two tasks whose chief has staged a model for ``--saved_model_path``."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.spec = JobSpec(
            "test", "local", roles=(Role("worker", 2),), saved_model_path=str(self.target)
        )
        for path in self.staging.iterdir():
            path.unlink()
        (self.staging / "a.bin").write_text("new")
        digests = {"a.bin": hashlib.sha256(b"new").hexdigest()}
        content = {"epoch": 2, "attempt": 1, "files": {"a.bin": 3}, "digests": digests}
        listed = self.job / list_path("saved-model", "worker:0")
        listed.parent.mkdir(parents=True)
        listed.write_text(json.dumps(content))

    def publish(self, store: LocalStore, tasks: Any = None) -> Published:
        tasks = tasks or {"worker:0": (2, 1), "worker:1": (2, 1)}
        return publish_outputs(store, self.spec.published, self.spec, JOB, tasks, again)


def test_a_model_appears_complete_with_its_manifest_or_not_at_all(tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path / "whole/job"))
    assert not ModelPlace(tmp_path / "whole").publish(store).failure
    complete = ["_SUCCESS", "a.bin", MODEL_MANIFEST]
    states = []
    for number in range(store.changes):
        place = ModelPlace(tmp_path / str(number))
        with pytest.raises(Interrupted):
            place.publish(CountingStore(str(place.job), kill_at=number))
        states.append(place.visible())
        done = place.publish(LocalStore(str(place.job)))
        assert (done.failure, done.outputs[0].name) == ("", "saved-model")
        manifest = json.loads((place.target / MODEL_MANIFEST).read_text())
        assert manifest["files"] == [
            {"path": "a.bin", "size": 3, "sha256": hashlib.sha256(b"new").hexdigest()}
        ]
        assert (place.visible(), place.hidden()) == (complete, [])
    assert {tuple(state or ()) for state in states} == {(), tuple(complete)}


def test_a_model_whose_chief_did_not_succeed_is_not_published(tmp_path: Path) -> None:
    place = ModelPlace(tmp_path)
    done = place.publish(LocalStore(str(place.job)), {"worker:1": (2, 1)})
    assert (done.failure, done.outputs, place.visible()) == ("", [], None)
    assert "nothing was published" in done.warnings[0]
    assert not place.hidden()
