"""Checkpoints in parts: what markers name, and the restoration of the files of several tasks."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.agent.sync import OtherTasksFiles
from submarine_runtime.agent.sync.directory_sync import DirectorySync, HardLinks
from submarine_runtime.protocol import to_json
from submarine_runtime.restore_points import (
    RestoreQuery,
    find_restore_point,
    order_of_single_task,
)
from submarine_runtime.snapshots import (
    MAX_METADATA,
    ChangedError,
    SnapshotWriter,
    parts_of,
    restore_chosen,
    scan_directory,
    step_of,
)
from submarine_runtime.storage import DamagedError, LocalStore
from tests.local.data.data_files import contents, make_config, make_scratch, reader, write


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (b"global_step500", [500]),
        (b"global_step7\n", [7]),
        (b"12", []),
        (b"best.pt", []),
        (b"", []),
    ],
)
def test_the_step_in_the_latest_file_of_deepspeed(text: bytes, step: list[int]) -> None:
    assert step_of("out/latest", text) == step


def test_the_parts_that_the_metadata_of_a_sharded_checkpoint_names() -> None:
    parts = [f"__{rank}_0.distcp" for rank in (0, 1, 12)]
    text = pickle.dumps({"storage": [(part, 0, 100) for part in parts * 2]})
    assert parts_of("step_3/.metadata", text) == sorted(parts)
    assert parts_of("step_3/model.bin", text) == []
    assert parts_of(".metadata", text.ljust(MAX_METADATA)) == []  # it may be cut off
    assert step_of("step_3/.metadata", text) == []


def job_store(root: Path) -> LocalStore:
    root.mkdir(exist_ok=True)
    return LocalStore(str(root))


def metadata(*ranks: int) -> bytes:
    return "".join(f"X __{rank}_0.distcp" for rank in ranks).encode()


def test_no_snapshot_is_taken_between_a_new_part_and_its_marker(tmp_path: Path) -> None:
    """``dcp.save`` to the same directory again: the old marker is there until all parts are."""
    work = tmp_path / "output/checkpoints"
    write(work, {"m/__0_0.distcp": b"old", "m/.metadata": metadata(0, 1)})
    writer = SnapshotWriter(job_store(tmp_path / "job"), "s", "checkpoints", reader(work))
    sync = DirectorySync(HardLinks(str(work)), "checkpoints", writer, 30.0)

    def publish() -> bool:
        for _scan in range(3):
            try:
                if sync.publish_if_due() is not None:
                    return True
            except ChangedError:
                continue
        return False

    assert publish()
    assert writer.newest is not None
    assert writer.newest.needs == {"m/.metadata": ["__0_0.distcp", "__1_0.distcp"]}
    write(work, {"m/__0_0.distcp": b"new"})
    assert not publish()
    write(work, {"m/.metadata.tmp": metadata(0, 1)})
    os.rename(work / "m/.metadata.tmp", work / "m/.metadata")
    assert publish()


def taken(store: LocalStore, root: Path, task: str, files: dict[str, bytes], **more: Any) -> None:
    """A snapshot of a task, in a directory of its own."""
    work = root / task.replace(":", "-")
    write(work, files)
    place = f"{more.pop('job', '')}/snapshots/{task.replace(':', '-')}/e1-a1".lstrip("/")
    writer = SnapshotWriter(store, place, "checkpoints", reader(work))
    writer.world = 2
    writer.publish(scan_directory(str(work)))


PARTS = {
    "worker:0": {"s/step_3/__0_0.distcp": b"zero", "s/step_3/.metadata": metadata(0, 1)},
    "worker:1": {"s/step_3/__1_0.distcp": b"one"},
}


def test_each_task_gets_all_files_and_uploads_its_own_only(tmp_path: Path) -> None:
    store = job_store(tmp_path / "job")
    for task, files in PARTS.items():
        taken(store, tmp_path / "written", task, files)
    query = RestoreQuery(2, ("worker:0", "worker:1"), "worker:0")
    choice = find_restore_point(store, query)
    assert (choice.rule, choice.step) == ("union", (3,))
    config = make_config(index=1, epoch=2)
    scratch = make_scratch(tmp_path / "worker-1", config)
    order = {"part": None, "shared": "snapshots/point-000002.json", "owned": ["worker:1"]}
    done = restore_chosen(store, scratch, config, "worker:1", order)
    root = scratch.outputs["checkpoints"]
    assert contents(Path(root)) == {**PARTS["worker:0"], **PARTS["worker:1"]}
    assert (done.files, sorted(done.others)) == (3, sorted(PARTS["worker:0"]))
    others = OtherTasksFiles(root)
    others.remember(done.others)
    assert set(others.own(scan_directory(root))) == set(PARTS["worker:1"])
    marker = Path(root) / "s/step_3/.metadata"
    assert others.holds(str(marker))
    # A file that the program writes again is its own.
    marker.write_bytes(b"mine")
    assert not others.holds(str(marker))
    assert "s/step_3/.metadata" in others.own(scan_directory(root))


def test_a_damaged_part_is_reported_with_the_task_that_saved_it(tmp_path: Path) -> None:
    store = job_store(tmp_path / "job")
    for task, files in PARTS.items():
        taken(store, tmp_path / "written", task, files)
    find_restore_point(store, RestoreQuery(2, ("worker:0", "worker:1"), "worker:0"))
    (pack,) = (tmp_path / "job/snapshots/worker-1/e1-a1").glob("*.pack")
    pack.write_bytes(b"xxx")
    order = {"part": None, "shared": "snapshots/point-000002.json", "owned": ["worker:0"]}
    scratch = make_scratch(tmp_path / "worker-0", make_config())
    with pytest.raises(DamagedError) as raised:
        restore_chosen(store, scratch, make_config(epoch=2), "worker:0", order)
    assert raised.value.part == "worker:1"


def test_a_single_task_continues_a_job_of_two(tmp_path: Path) -> None:
    store = job_store(tmp_path)
    for task, files in PARTS.items():
        taken(store, tmp_path / "written", task, files, job="old")
    own = job_store(tmp_path / "new")
    old = str(tmp_path / "old")
    order, warnings = order_of_single_task(own, "worker:0", old, None)
    assert warnings == ()
    assert order is not None
    scratch = make_scratch(tmp_path / "scratch", make_config())
    done = restore_chosen(own, scratch, make_config(), "worker:0", order)
    assert contents(Path(scratch.outputs["checkpoints"])) == {
        **PARTS["worker:0"],
        **PARTS["worker:1"],
    }
    assert done.others == []


def test_a_single_task_does_not_continue_with_an_incomplete_checkpoint(tmp_path: Path) -> None:
    store = job_store(tmp_path)
    taken(store, tmp_path / "written", "worker:0", PARTS["worker:0"], job="old")
    own = job_store(tmp_path / "new")
    order, warnings = order_of_single_task(own, "worker:0", str(tmp_path / "old"), None)
    assert order == {"part": None}
    assert "no complete checkpoint of all tasks" in warnings[0]


def test_the_latest_file_of_deepspeed_names_the_newest_checkpoint_that_is_restored(
    tmp_path: Path,
) -> None:
    store = job_store(tmp_path / "job")

    def files(rank: int, *steps: int) -> dict[str, bytes]:
        name = f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        found = {f"global_step{step}/{name}": f"{rank} {step}".encode() for step in steps}
        return {**found, "latest": f"global_step{steps[-1]}".encode()} if rank == 0 else found

    taken(store, tmp_path / "written", "worker:0", files(0, 3, 6))
    taken(store, tmp_path / "written", "worker:1", files(1, 3))
    choice = find_restore_point(store, RestoreQuery(2, ("worker:0", "worker:1"), "worker:0"))
    assert (choice.rule, choice.step) == ("union", (3,))
    order = {"part": None, "shared": "snapshots/point-000002.json", "owned": ["worker:0"]}
    scratch = make_scratch(tmp_path / "worker-0", make_config())
    restore_chosen(store, scratch, make_config(epoch=2), "worker:0", order)
    assert contents(Path(scratch.outputs["checkpoints"])) == {**files(0, 3), **files(1, 3)}


def test_a_restore_point_is_plain_json(tmp_path: Path) -> None:
    store = job_store(tmp_path / "job")
    for task, files in PARTS.items():
        taken(store, tmp_path / "written", task, files)
    choice = find_restore_point(store, RestoreQuery(2, ("worker:0", "worker:1"), "worker:0"))
    stored = json.loads((tmp_path / "job/snapshots/point-000002.json").read_text())
    assert stored["shared"] == ["worker:0", "worker:1"]
    assert set(to_json(choice)) == set(stored)
