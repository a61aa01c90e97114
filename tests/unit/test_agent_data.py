"""Snapshots, checkpoint paths, growing files and versions, with a store that fails anywhere."""

from __future__ import annotations

import io
import os
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "local"))

from data_rig import (
    at_path,
    contents,
    make_config,
    make_scratch,
    newest,
    reader,
    seen,
    tree,
    write,
)

from submarine_runtime.agent import versions
from submarine_runtime.agent.growing import Growing, assemble, shipped_lengths
from submarine_runtime.agent.inputs import InputError, SourceFile, fetch, share
from submarine_runtime.agent.looking import is_coherent, is_whole
from submarine_runtime.agent.manifest import Manifest, Saved
from submarine_runtime.agent.mirror import Mirror
from submarine_runtime.agent.outputs import find_outputs
from submarine_runtime.agent.restore import restore
from submarine_runtime.agent.snapshots import MAX_PACKS, ChangedError, Snapshots
from submarine_runtime.agent.store import StoreError
from submarine_runtime.agent.store_local import LocalStore
from submarine_runtime.protocol.launch import Input
from submarine_runtime.protocol.reasons import EndReason

WRITES = ("publish", "put", "move", "delete", "make_directory", "upload")


class DyingStore(LocalStore):
    """Fails at one of its writing operations, before or after it is done, and ever after."""

    def __init__(self, root: str, at: int, done: bool) -> None:
        super().__init__(root)
        self.left, self.done_first = at, done

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in WRITES:
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0 or (self.left == 0 and not self.done_first):
                raise StoreError("the process died here", transient=True)
            result = value(*args, **options)
            if self.left == 0:
                raise StoreError("the process died there", transient=True)
            return result

        return call


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "job").mkdir()
    return LocalStore(str(tmp_path / "job"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def taking(store: LocalStore, work: Path, attempt: str = "e1-a1") -> Snapshots:
    return Snapshots(store, f"snapshots/worker-0/{attempt}", "checkpoints", reader(work))


# --- which files are complete


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("model.keras", True),
        ("ckpt-5.data-00000-of-00001", True),
        ("checkpoint", True),
        ("temperature.npy", True),
        ("a.b c+%.pt", True),
        ("ünï-日本.pt", True),
        (".hidden", False),
        ("model.pt.tmp", False),
        ("checkpoint.tmp0a1b2c", False),
        ("ckpt-5.data-00000-of-00001.tempstate123", False),
        ("ckpt-5_temp/part-0.index", False),
        ("model.pt~", False),
        ("x.part", False),
        ("line\nbreak", False),
    ],
)
def test_names_that_are_looked_at(work: Path, name: str, kept: bool) -> None:
    write(work, {name: b"x"})
    assert (name in seen(work)) == kept


def test_a_file_that_somebody_writes_is_not_whole(work: Path) -> None:
    path = str(work / "m.bin")
    with open(path, "wb") as file:
        file.write(b"half")
        file.flush()
        assert not is_whole(path, 4)
    assert is_whole(path, 4)
    os.symlink(path, work / "link")
    assert list(seen(work)) == ["m.bin"]


def test_a_cut_archive_is_not_whole(work: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("weights", b"w" * 10_000)
    data = made.getvalue()
    write(work, {"whole.pt": data, "half.pt": data[:-30]})
    assert is_whole(str(work / "whole.pt"), len(data))
    assert not is_whole(str(work / "half.pt"), len(data) - 30)


def test_a_tensorflow_state_that_names_what_is_not_there(work: Path) -> None:
    write(work, {"checkpoint": b'model_checkpoint_path: "ckpt-5"\nall_model_check...'})
    write(work, {"ckpt-50.index": b""})
    assert not is_coherent(str(work), seen(work))
    write(work, {"ckpt-5.index": b"", "ckpt-5.data-00000-of-00001": b""})
    assert is_coherent(str(work), seen(work))
    write(work, {"sub/checkpoint": b'model_checkpoint_path: "/elsewhere/ckpt-1"'})
    assert is_coherent(str(work), seen(work))


# --- snapshots


def test_only_new_bytes_are_uploaded(store: LocalStore, work: Path, tmp_path: Path) -> None:
    snapshots = taking(store, work)
    write(work, {"big.pt": os.urandom(9 << 20), "a/small": b"s", "b": b"t"})
    assert snapshots.publish(seen(work)) == (9 << 20) + 2
    os.rename(work / "big.pt", work / "renamed.pt")
    write(work, {"b": b"other"})
    assert snapshots.publish(seen(work)) == 5
    assert newest(store, tmp_path / "back") == contents(work)


def test_old_snapshots_go_and_files_are_bounded(
    store: LocalStore, work: Path, tmp_path: Path
) -> None:
    snapshots = taking(store, work)
    for step in range(3 * MAX_PACKS):
        write(work, {f"ckpt-{step}": b"%d" % step})
        snapshots.publish(seen(work))
    names = tree(tmp_path / "job")
    assert len([name for name in names if name.endswith(".json")]) == 2
    assert len(names) <= MAX_PACKS + 4
    assert newest(store, tmp_path / "back") == contents(work)


def test_a_file_that_changes_meanwhile_makes_no_snapshot(store: LocalStore, work: Path) -> None:
    write(work, {"a": b"one", "b": b"two"})
    files = seen(work)
    write(work, {"b": b"three"})
    with pytest.raises(ChangedError):
        taking(store, work).publish(files)
    assert not [name for name in tree(store._root) if name.endswith(".json")]


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_snapshot_that_dies_anywhere(work: Path, tmp_path: Path, at: int, done: bool) -> None:
    """Whenever the writer dies, the newest snapshot is whole: the last one or the one before."""
    store = DyingStore(str(tmp_path / "job"), 10**9, False)
    (tmp_path / "job").mkdir()
    snapshots = taking(store, work)
    states = []
    for step in range(3):
        write(work, {"model.pt": b"model %d" % step, f"log-{step}": b"x" * step})
        states.append(contents(work))
        if step == 2:
            store.left, store.done_first = at, done
        try:
            snapshots.publish(seen(work))
        except StoreError:
            assert step == 2
    alive = LocalStore(str(tmp_path / "job"))
    back = newest(alive, tmp_path / "back")
    assert back in states[1:]
    store.left = 10**9
    snapshots.publish(seen(work))
    assert newest(alive, tmp_path / "back") == states[2]


def test_damaged_and_half_snapshots_are_passed_over(
    store: LocalStore, work: Path, tmp_path: Path
) -> None:
    states = []
    for epoch in (1, 2):
        snapshots = taking(store, work, f"e{epoch}-a1")
        for step in (1, 2):
            write(work, {"m.pt": b"epoch %d step %d" % (epoch, step)})
            snapshots.publish(seen(work))
            states.append(contents(work))
    job = tmp_path / "job/snapshots/worker-0"
    config = make_config()
    scratch = make_scratch(tmp_path / "scratch", config)

    def back() -> tuple[dict[str, bytes], int]:
        restored = restore(store, scratch, config, "worker:0", None)
        return contents(scratch.outputs["checkpoints"]), len(restored.passed_over)

    assert back() == (states[3], 0)
    (job / "e2-a1/checkpoints-000002.pack").write_bytes(b"epoch 2 step X")
    os.utime(f"{scratch.outputs['checkpoints']}/m.pt")
    assert back() == (states[2], 1)
    (job / "e2-a1/checkpoints-000001.pack").unlink()
    assert back() == (states[1], 2)
    (job / "e1-a1/checkpoints-000002.json").write_bytes(b"{")
    assert back() == (states[0], 3)


def test_a_manifest_that_leads_elsewhere_is_refused() -> None:
    for path in ("../x", "/etc/x", "a/../../x", "a//b", ""):
        data = Manifest(1, 0.0, (Saved(path, 1, 1, 1, "d"),)).to_bytes()
        with pytest.raises(ValueError, match="no path below"):
            Manifest.from_bytes(data)
    for data in (b"", b"[]", b"{}", b'{"files": 3, "number": 1, "time": 1}', b"\xff"):
        with pytest.raises(ValueError):
            Manifest.from_bytes(data)


# --- the checkpoint path


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("at", range(1, 13))
def test_a_checkpoint_path_whose_writer_dies_anywhere(
    work: Path, tmp_path: Path, at: int, done: bool
) -> None:
    """Whenever the writer dies, the path gives all of the new files or all of the old."""
    base = str(tmp_path / "path")
    alive = LocalStore(str(tmp_path))
    write(work, {"model.pt": b"old model", "optimizer.pt": b"old optimizer", "gone": b"g"})
    old = contents(work)
    Mirror(alive, base, "job-1-e1-a1", reader(work)).publish(seen(work))
    write(base, {"by-hand.txt": b"of the user"})
    assert at_path(alive, base, tmp_path / "back") == {**old, "by-hand.txt": b"of the user"}

    store = DyingStore(str(tmp_path), at, done)
    write(work, {"model.pt": b"new model", "optimizer.pt": b"new optimizer", "d/e": b"deep"})
    os.unlink(work / "gone")
    new = contents(work)
    mirror = Mirror(store, base, "job-2-e1-a1", reader(work))
    try:
        mirror.publish(seen(work))
        finished = True
    except StoreError:
        finished = False
    back = at_path(alive, base, tmp_path / "back")
    assert back.pop("by-hand.txt") == b"of the user"
    whole = [old, new, {**new, "gone": b"g"}]
    assert back in whole
    assert not finished or back == new

    # The next writer finishes what was begun, and its own on top.
    write(work, {"model.pt": b"newest model"})
    after = Mirror(alive, base, "job-2-e1-a2", reader(work))
    after.publish(seen(work))
    after.close()
    write(base, {})
    visible = {k: v for k, v in contents(base).items() if not k.startswith(".submarine")}
    assert visible == {**contents(work), "by-hand.txt": b"of the user"}
    assert len(tree(f"{base}/.submarine")) <= 1 + len([1 for name in tree(base) if "new-" in name])


def test_what_is_at_the_path_already_is_not_uploaded_again(work: Path, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    base = str(tmp_path / "path")
    write(work, {"a": b"1234", "b": b"5678"})
    assert Mirror(store, base, "j-e1-a1", reader(work)).publish(seen(work)) == 8
    back = tmp_path / "back"
    at_path(store, base, back)
    write(back, {"b": b"56789"})
    assert Mirror(store, base, "j-e2-a1", reader(back)).publish(seen(back)) == 5


# --- TensorBoard files


def test_growing_files_come_together(store: LocalStore, work: Path, tmp_path: Path) -> None:
    name = "train/events.out.tfevents.1.host.2.v2"
    growing = Growing(store, "growing/worker-0/e1-a1", str(work), reader(work), {})
    before: dict[str, Any] = {}
    data = b""
    for step in range(70):
        data += b"%d;" % step
        write(work, {name: data} if step % 30 else {name: data, "projector.json": b"%d" % step})
        files = seen(work)
        growing.ship(files, before)
        before = files
        if step in (3, 40):
            assemble(store, "growing/worker-0", str(tmp_path / "reader"))
            assert contents(tmp_path / "reader")[name] == data
    pieces = tree(tmp_path / "job")
    assert len(pieces) < 2 * 16 + 3
    assemble(store, "growing/worker-0", str(tmp_path / "reader"))
    assert contents(tmp_path / "reader") == contents(work)

    # The next attempt goes on behind what is there.
    shipped = shipped_lengths(store, "growing/worker-0")
    assert shipped[name] == len(data)
    write(work, {name: data + b"more"})
    again = Growing(store, "growing/worker-0/e2-a1", str(work), reader(work), shipped)
    again.ship(seen(work), {})
    assert (tmp_path / f"job/growing/worker-0/e2-a1/{name}/{len(data):012d}").read_bytes() == (
        b"more"
    )
    assemble(store, "growing/worker-0", str(tmp_path / "reader"))
    assert contents(tmp_path / "reader") == contents(work)


# --- inputs


@given(st.lists(st.integers(0, 1000), max_size=40), st.integers(1, 6))
def test_shares_are_disjoint_complete_and_even(sizes: list[int], count: int) -> None:
    files = [SourceFile(f"f{number}", size) for number, size in enumerate(sizes)]
    parts = [share(files, index, count) for index in range(count)]
    assert sorted(file for part in parts for file in part) == sorted(files)
    loads = [sum(file.size for file in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes, default=0)
    assert max(map(len, parts)) - min(map(len, parts)) <= max(1, len(files) - count + 1)


def test_inputs_are_fetched_and_shared_out(store: LocalStore, tmp_path: Path) -> None:
    data = {f"part {n}+%é.csv": bytes([n]) * (n + 1) for n in range(5)}
    write(tmp_path / "set", {**data, "_SUCCESS": b"", "sub/deep.csv": b"d"})
    write(tmp_path, {"one.bin": b"single"})
    wishes = [
        Input("TRAIN", str(tmp_path / "set"), shard=True),
        Input("ALL", str(tmp_path / "set/")),
        Input("ONE", str(tmp_path / "one.bin")),
    ]
    got: dict[str, bytes] = {}
    for index in range(3):
        config = make_config(fetch=wishes)
        scratch = make_scratch(tmp_path / f"s{index}", config)
        heard: list[int] = []
        where = fetch(config, store, scratch, index, 3, lambda *step: heard.extend(step))  # noqa: B023
        assert heard[-2] == heard[-1] > 0
        assert contents(where["ALL"]) == contents(tmp_path / "set")
        assert Path(where["ONE"]).read_bytes() == b"single"
        part = contents(where["TRAIN"])
        assert part.pop("_SUCCESS") == b""
        assert not got.keys() & part.keys()
        got |= part
    assert got == {**data, "sub/deep.csv": b"d"}


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Input("A", "/nowhere/at/all"), "nothing at /nowhere/at/all"),
        (Input("A", "{file}", shard=True), "is one file"),
    ],
)
def test_an_input_that_cannot_be_fetched(
    store: LocalStore, tmp_path: Path, wish: Input, words: str
) -> None:
    write(tmp_path, {"file": b"x"})
    wish.source = wish.source.replace("{file}", str(tmp_path / "file"))
    config = make_config(fetch=[wish])
    with pytest.raises(InputError, match=words) as refused:
        fetch(config, store, make_scratch(tmp_path / "s", config), 0, 2)
    assert refused.value.reason is EndReason.INPUT_MISSING


def test_an_input_larger_than_the_disk(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 43)
    config = make_config(fetch=[Input("A", str(tmp_path / "huge"))])
    with pytest.raises(InputError, match="GiB free") as refused:
        fetch(config, store, make_scratch(tmp_path / "s", config), 0, 1)
    assert refused.value.reason is EndReason.DISK_FULL


class BreakingStore(LocalStore):
    """Breaks off each read after some bytes; a read from an offset goes on there."""

    reads: list[int]

    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Any:
        self.reads.append(offset)
        for number, block in enumerate(super().stream(path, offset, length)):
            if number == 2:
                raise StoreError("the connection broke", transient=True)
            yield block


def test_a_file_is_taken_up_where_it_broke_off(tmp_path: Path) -> None:
    data = os.urandom(5 * (1 << 18))
    write(tmp_path, {"big": data})
    store = BreakingStore(str(tmp_path))
    store.reads = []
    config = make_config(fetch=[Input("A", str(tmp_path / "big"))])
    where = fetch(config, store, make_scratch(tmp_path / "s", config), 0, 1)
    assert Path(where["A"]).read_bytes() == data
    assert store.reads == [0, 2 << 18, 4 << 18]


# --- versions


def test_versions_while_the_program_writes(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "REST_SECONDS", 0.3)
    monkeypatch.setattr(versions, "GAP", 0.05)
    scratch = make_scratch(tmp_path / "s", make_config())
    model = scratch.outputs["model"]
    with pytest.raises(versions.VersionError, match="no complete model yet"):
        versions.save_version(store, scratch)
    write(model, {"saved_model.pb": b"graph", "variables/v.index": b"i"})
    first = versions.save_version(store, scratch)
    assert (first["name"], first["size"], first["left_out"]) == ("v1", 6, [])
    with open(f"{model}/log.csv", "wb") as file:
        file.write(b"still open")
        file.flush()
        second = versions.save_version(store, scratch, "after-log")
        assert second["left_out"] == ["log.csv"]
        assert second["digest"] == first["digest"]
    for name, words in (("after-log", "already"), ("../x", "no name"), ("a b", "no name")):
        with pytest.raises(versions.VersionError, match=words):
            versions.save_version(store, scratch, name)
    third = versions.save_version(store, scratch)
    assert third["name"] == "v2"
    assert third["digest"] != first["digest"]
    saved = contents(tmp_path / "job/models")
    assert sorted({name.split("/")[0] for name in saved}) == ["after-log", "v1", "v2"]
    assert saved["v1/model/saved_model.pb"] == b"graph"


def test_outputs_of_other_tasks_have_a_place_of_their_own(work: Path) -> None:
    write(work, {"m.pt": b"m"})
    items = list(find_outputs({"checkpoints": str(work)}, "tasks/worker-1/"))
    assert [(item.path, item.size) for item in items] == [("tasks/worker-1/checkpoints/m.pt", 1)]


def test_looking_costs_little(work: Path) -> None:
    write(work, {f"d{n % 10}/f{n}": b"" for n in range(1000)})
    began = time.thread_time()
    for _ in range(10):
        seen(work)
    assert (time.thread_time() - began) / 10 < 0.05  # at one look in 10 s: half a percent
