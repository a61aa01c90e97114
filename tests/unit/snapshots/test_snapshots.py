"""Snapshots of checkpoints: which files are complete, what is uploaded, what is restored."""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path

import pytest

from submarine_runtime.agent.sync.directory_sync import DirectorySync, HardLinks
from submarine_runtime.snapshots import (
    ChangedError,
    FileReader,
    SnapshotWriter,
    is_coherent,
    is_complete,
    restore,
)
from submarine_runtime.snapshots.manifest import Manifest, ManifestEntry
from submarine_runtime.snapshots.writer import MAX_PACKS
from submarine_runtime.storage import LocalStore, StoreError
from tests.local.data.data_files import (
    DyingStore,
    contents,
    make_config,
    make_scratch,
    newest,
    reader,
    seen,
    tree,
    write,
)


def taking(store: LocalStore, work: Path, attempt: str = "e1-a1") -> SnapshotWriter:
    return SnapshotWriter(store, f"snapshots/worker-0/{attempt}", "checkpoints", reader(work))


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
        (".metadata", True),
        (".metadata.tmp", False),
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


def test_a_file_that_is_being_written_is_not_complete(work: Path) -> None:
    path = str(work / "m.bin")
    with open(path, "wb") as file:
        file.write(b"half")
        file.flush()
        assert not is_complete(path, 4)
    assert is_complete(path, 4)
    os.symlink(path, work / "link")
    assert list(seen(work)) == ["m.bin"]


def test_a_checkpoint_that_orbax_has_not_completed_is_left_out(work: Path) -> None:
    """With a directory for each process it has its final name from the beginning."""
    begun = b'{"init_timestamp_nsecs": 1795971121, "commit_timestamp_nsecs": null}'
    for step in (b"4", b"8"):
        write(work, {f"{step.decode()}/_CHECKPOINT_METADATA": begun.replace(b"null", step)})
        write(work, {f"{step.decode()}/default/ocdbt.process_1/d/a": step})
    whole = seen(work)
    write(work, {"80": b"x"})
    assert set(seen(work)) == {*whole, "80"}
    write(work, {"8/_CHECKPOINT_METADATA": begun})
    assert set(seen(work)) == {*(name for name in whole if name.startswith("4/")), "80"}
    # Other programs may use this name.
    write(work, {"8/_CHECKPOINT_METADATA": b"[8"})
    assert set(seen(work)) == {*whole, "80"}


def test_a_cut_archive_is_not_whole(work: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("weights", b"w" * 10_000)
    data = made.getvalue()
    write(work, {"whole.pt": data, "half.pt": data[:-30]})
    assert is_complete(str(work / "whole.pt"), len(data))
    assert not is_complete(str(work / "half.pt"), len(data) - 30)


@pytest.mark.parametrize(
    ("name", "text", "whole"),
    [
        ("rng_state_1.pth", b"", False),
        ("model.safetensors", b"", False),
        ("_SUCCESS", b"", True),
        ("trainer_state.json", b"", False),
        ("trainer_state.json", b'{"global_step": 8, "log_history": [{"loss": 1}', False),
        ("trainer_state.json", b'{"global_step": 8}\n', True),
        ("training_metadata.json", b'{"epoch": 3, ', False),
        ("losses.json", b"[1, 2", True),
    ],
)
def test_what_a_write_to_a_full_disk_leaves_is_not_whole(
    work: Path, name: str, text: bytes, whole: bool
) -> None:
    write(work, {name: text})
    assert is_complete(str(work / name), len(text)) == whole


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


@pytest.mark.slow
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


def test_the_step_in_a_metadata_file_is_that_of_the_snapshot(store: LocalStore, work: Path) -> None:
    name = "training_metadata.json"
    write(work, {name: b'{"epoch": 3, "batch": 7}', "latest.weights.h5": b"weights"})
    hold, files = HardLinks(str(work)), seen(work)
    assert hold.create(files)
    made = SnapshotWriter(
        store, "snapshots/worker-0/e1-a1", "checkpoints", FileReader(hold.path_of, lambda: None)
    )
    made.publish(files)
    assert made.newest is not None
    assert made.newest.steps == {name: [3, 7]}
    (work / name).write_bytes(b'{"epoch": 4, "batch": 0 }')  # Keras writes it in place
    with pytest.raises(ChangedError):
        made.publish(files)
    assert made.newest.number == 1


def test_no_last_snapshot_of_a_cut_archive(store: LocalStore, work: Path) -> None:
    """As an exception in the middle of ``torch.save`` leaves one."""
    made = taking(store, work)
    settling = DirectorySync(HardLinks(str(work)), "checkpoints", made, 1.0)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("data", b"x" * 1000)
    write(work, {"checkpoint.pt": whole.getvalue()[:600]})
    settling.publish_last(whole=True, outputs_follow=False)
    assert made.number == 0
    write(work, {"checkpoint.pt": whole.getvalue()})
    settling.publish_last(whole=False, outputs_follow=False)
    assert made.number == 0
    settling.publish_last(whole=True, outputs_follow=False)
    assert made.number == 1


def test_a_file_that_is_seen_only_after_the_end_was_not_seen_whole(
    store: LocalStore, work: Path
) -> None:
    made, runs = taking(store, work), [True]
    settling = DirectorySync(HardLinks(str(work)), "checkpoints", made, 1.0, dict, lambda: runs[0])
    write(work, {"weights.h5": b"cut"})
    runs[0] = False  # SIGTERM ended the program in the middle of the write
    assert [settling.publish_if_due() for _ in range(3)] == [None] * 3
    settling.publish_last(whole=False, outputs_follow=False)
    assert made.number == 0
    runs[0] = True
    settling.publish_if_due()
    settling.publish_last(whole=False, outputs_follow=False)
    assert made.number == 1


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
        return contents(scratch.outputs["checkpoints"]), len(restored.skipped)

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
        data = Manifest(1, 0.0, (ManifestEntry(path, 1, 1, 1, "d"),)).to_bytes()
        with pytest.raises(ValueError, match="no path below"):
            Manifest.from_bytes(data)
    for data in (b"", b"[]", b"{}", b'{"files": 3, "number": 1, "time": 1}', b"\xff"):
        with pytest.raises(ValueError):
            Manifest.from_bytes(data)


def test_looking_costs_little(work: Path) -> None:
    write(work, {f"d{n % 10}/f{n}": b"" for n in range(1000)})
    began = time.thread_time()
    for _ in range(10):
        seen(work)
    assert (time.thread_time() - began) / 10 < 0.05  # at one look in 10 s: half a percent
