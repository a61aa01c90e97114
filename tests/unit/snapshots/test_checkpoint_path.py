"""Checkpoint paths, growing files and versions, with a store that fails anywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.agent.outputs.files import find_outputs
from submarine_runtime.snapshots import (
    CheckpointPathWriter,
    PieceWriter,
    assemble,
    shipped_lengths,
    versions,
)
from submarine_runtime.storage import LocalStore, StoreError
from tests.local.data.data_files import (
    DyingStore,
    at_path,
    contents,
    make_config,
    make_scratch,
    reader,
    seen,
    tree,
    write,
)

# --- the checkpoint path


@pytest.mark.slow
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
    CheckpointPathWriter(alive, base, "job-1-e1-a1", reader(work)).publish(seen(work))
    write(base, {"by-hand.txt": b"of the user"})
    assert at_path(alive, base, tmp_path / "back") == {**old, "by-hand.txt": b"of the user"}

    store = DyingStore(str(tmp_path), at, done)
    write(work, {"model.pt": b"new model", "optimizer.pt": b"new optimizer", "d/e": b"deep"})
    os.unlink(work / "gone")
    new = contents(work)
    mirror = CheckpointPathWriter(store, base, "job-2-e1-a1", reader(work))
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
    after = CheckpointPathWriter(alive, base, "job-2-e1-a2", reader(work))
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
    assert CheckpointPathWriter(store, base, "j-e1-a1", reader(work)).publish(seen(work)) == 8
    back = tmp_path / "back"
    at_path(store, base, back)
    write(back, {"b": b"56789"})
    assert CheckpointPathWriter(store, base, "j-e2-a1", reader(back)).publish(seen(back)) == 5


# --- TensorBoard files


def test_growing_files_come_together(store: LocalStore, work: Path, tmp_path: Path) -> None:
    name = "train/events.out.tfevents.1.host.2.v2"
    growing = PieceWriter(store, "growing/worker-0/e1-a1", str(work), reader(work), {})
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
    again = PieceWriter(store, "growing/worker-0/e2-a1", str(work), reader(work), shipped)
    again.ship(seen(work), {})
    assert (tmp_path / f"job/growing/worker-0/e2-a1/{name}/{len(data):012d}").read_bytes() == (
        b"more"
    )
    assemble(store, "growing/worker-0", str(tmp_path / "reader"))
    assert contents(tmp_path / "reader") == contents(work)


# --- versions


@pytest.mark.slow
def test_versions_while_the_program_writes(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "STABLE_SECONDS", 0.3)
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
    for name, words in (
        ("after-log", "already"),
        ("../x", "not a valid name"),
        ("a b", "not a valid name"),
    ):
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
