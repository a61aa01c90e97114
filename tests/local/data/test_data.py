"""Checkpoints, TensorBoard files and inputs with real programs that are killed while they write."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from submarine_runtime.agent.sync import SyncThread
from submarine_runtime.protocol import AgentConfig
from submarine_runtime.snapshots import assemble, delete_snapshots, restore
from submarine_runtime.storage import LocalStore, Scratch, StoreError
from tests.local.data.data_files import (
    JOB_ID,
    at_path,
    contents,
    make_config,
    make_scratch,
    newest,
    write,
)
from tests.waiting import until

#: Writes checkpoints as TensorFlow does, slowly; ends with 3 if what it goes on from is damaged.
PROGRAM = """
import hashlib, os, sys, time
folder, board, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.chdir(folder)
step = 0
if os.path.exists("checkpoint"):
    name = open("checkpoint").read().split('"')[1]
    step = int(name.split("-")[1])
    for suffix in (".data-00000-of-00001", ".index"):
        data = open(name + suffix, "rb").read()
        if data != hashlib.sha256((name + suffix).encode()).digest() * 3000:
            sys.exit(3)
print("from", step, flush=True)
events = open(os.path.join(board, f"events.out.tfevents.{os.getpid()}"), "ab", buffering=0)
while step < last:
    step += 1
    for suffix in (".data-00000-of-00001", ".index"):
        name = f"ckpt-{step}{suffix}"
        with open(name, "wb") as file:
            for _ in range(3):
                file.write(hashlib.sha256(name.encode()).digest() * 1000)
                file.flush()
                time.sleep(0.02)
    with open("checkpoint.tmp1", "w") as file:
        file.write(f'model_checkpoint_path: "ckpt-{step}"')
    os.rename("checkpoint.tmp1", "checkpoint")
    for suffix in (".data-00000-of-00001", ".index"):
        if step > 3:
            os.unlink(f"ckpt-{step - 3}{suffix}")
    events.write(b"%08d" % step)
    time.sleep(random_pause)
""".replace("random_pause", "0.25 if step % 4 else 0.9")


def start(scratch: Scratch, last: int) -> subprocess.Popen[str]:
    folders = [scratch.outputs[part] for part in ("checkpoints", "tensorboard")]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *folders, str(last)], stdout=subprocess.PIPE, text=True
    )


class Quiet:
    """Collects what the syncing says."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def __call__(self, kind: str, detail: str, data: dict[str, object]) -> None:
        self.events.append((kind, detail))


def sync(
    store: LocalStore, scratch: Scratch, config: AgentConfig, epoch: int, said: Quiet
) -> SyncThread:
    syncing = SyncThread(store, scratch, config, "worker:0", epoch, 1, said)
    syncing.start()
    return syncing


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    (tmp_path / "job").mkdir()
    return LocalStore(str(tmp_path / "job"))


def synced_step(store: LocalStore, target: Path) -> int:
    """The step of the newest whole snapshot."""
    named = newest(store, target).get("checkpoint")
    return int(named.decode().split('"')[1].split("-")[1]) if named else 0


def test_killed_again_and_again_it_goes_on_from_whole_checkpoints(
    store: LocalStore, tmp_path: Path
) -> None:
    config = make_config(sync_interval=0.2, checkpoint_path=str(tmp_path / "path"))
    said = Quiet()
    dice = random.Random(7)
    started = []
    for epoch in range(1, 5):
        # Each epoch in another container: all that it has is what was synced.
        scratch = make_scratch(tmp_path / f"container-{epoch}", config)
        assert restore(store, scratch, config, "worker:0", "worker:0").skipped == []
        syncing = sync(store, scratch, config, epoch, said)
        process = start(scratch, 1000)
        assert process.stdout is not None
        started.append(int(process.stdout.readline().split()[1]))
        until(lambda: synced_step(store, tmp_path / "look") > started[-1])
        time.sleep(dice.random())
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert syncing.stop(60.0, whole=False)
        process.stdout.close()
    assert started[0] == 0
    assert started == sorted(set(started)), started

    scratch = make_scratch(tmp_path / "last", config)
    restored = restore(store, scratch, config, "worker:0", "worker:0")
    assert "e4-a1" in restored.source
    syncing = sync(store, scratch, config, 5, said)
    process = start(scratch, started[-1] + 8)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out[:5]) == (0, "from ")
    assert syncing.stop(60.0)
    written = contents(scratch.outputs["checkpoints"])
    assert newest(store, tmp_path / "back") == written
    assert at_path(store, str(tmp_path / "path"), tmp_path / "back") == written
    # What attempts before this one had shipped of their event files is still to be seen.
    assemble(store, "growing/worker-0", str(tmp_path / "board"))
    assert len(contents(tmp_path / "board")) == 5
    assert contents(tmp_path / "board") == contents(scratch.outputs["tensorboard"])
    assert {kind for kind, _ in said.events} == {"snapshot"}
    syncing.discard()
    delete_snapshots(store)
    assert contents(tmp_path / "job") == {}


def test_another_job_goes_on_from_the_path_or_from_the_job(
    store: LocalStore, tmp_path: Path
) -> None:
    config = make_config(sync_interval=0.2, checkpoint_path=str(tmp_path / "path"))
    scratch = make_scratch(tmp_path / "first", config)
    syncing = sync(store, scratch, config, 1, Quiet())
    process = start(scratch, 5)
    process.communicate(timeout=120)
    assert process.returncode == 0
    until(lambda: synced_step(store, tmp_path / "look"))
    # The job ends well: its outputs are saved whole, so that only the path is brought up to date.
    assert syncing.stop(60.0, outputs_follow=True)
    written = contents(scratch.outputs["checkpoints"])
    assert written["checkpoint"] == b'model_checkpoint_path: "ckpt-5"'

    (tmp_path / "job-2").mkdir()
    fresh = LocalStore(str(tmp_path / "job-2"))
    for number, changes in enumerate(
        ({"checkpoint_path": str(tmp_path / "path")}, {"restore_from": str(tmp_path / "job")})
    ):
        config = make_config(**changes)
        scratch = make_scratch(tmp_path / f"next-{number}", config)
        restored = restore(fresh, scratch, config, "worker:0", "worker:0")
        assert restored.source
        process = start(scratch, 0)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        if "checkpoint_path" in changes:
            assert contents(scratch.outputs["checkpoints"]) == written
        assert out.split()[1] in "345"


class AwayStore(LocalStore):
    """Away for some time: nothing can be written or read."""

    away = False

    def __getattribute__(self, name: str) -> object:
        value = super().__getattribute__(name)
        if name.startswith("_") or name == "away" or not callable(value):
            return value
        if super().__getattribute__("away"):
            raise StoreError("nobody answers", transient=True)
        return value


def test_the_store_is_away_and_syncing_catches_up(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    store = AwayStore(str(tmp_path / "job"))
    config = make_config(sync_interval=0.2)
    scratch = make_scratch(tmp_path / "s", config)
    said = Quiet()
    syncing = sync(store, scratch, config, 1, said)
    write(scratch.outputs["checkpoints"], {"a.pt": b"one"})
    until(lambda: "snapshot" in [kind for kind, _ in said.events])
    store.away = True
    write(scratch.outputs["checkpoints"], {"a.pt": b"two"})
    write(scratch.outputs["tensorboard"], {"events.out.tfevents.1": b"x"})
    until(lambda: "warning" in [kind for kind, _ in said.events])
    time.sleep(3)
    store.away = False

    def caught_up() -> bool:
        try:
            return newest(store, tmp_path / "back") == {"a.pt": b"two"}
        except StoreError:
            return False

    until(caught_up)
    assert syncing.stop(60.0)
    assert [kind for kind, _ in said.events] == ["snapshot", "warning", "synced"]
    assert contents(tmp_path / "job")[f"growing/worker-0/e1-a1/events.out.tfevents.1/{0:012d}"] == (
        b"x"
    )


def test_a_log_that_stays_open_does_not_hold_up_the_checkpoints(
    store: LocalStore, tmp_path: Path
) -> None:
    config = make_config(sync_interval=0.2)
    scratch = make_scratch(tmp_path / "s", config)
    folder = scratch.outputs["checkpoints"]
    syncing = sync(store, scratch, config, 1, Quiet())
    with open(f"{folder}/training.csv", "wb") as log:
        log.write(b"epoch,loss\n")
        log.flush()
        write(folder, {"a.pt": b"one"})
        until(lambda: newest(store, tmp_path / "back") == {"a.pt": b"one"})
    until(lambda: "training.csv" in newest(store, tmp_path / "back"))
    assert syncing.stop(60.0)


def test_it_costs_next_to_nothing_while_nothing_changes(store: LocalStore, tmp_path: Path) -> None:
    config = make_config(sync_interval=0.5)
    scratch = make_scratch(tmp_path / "s", config)
    write(scratch.outputs["checkpoints"], {f"d{n % 7}/f{n}.pt": b"x" for n in range(300)})
    syncing = sync(store, scratch, config, 1, Quiet())
    operations: list[str] = []
    spent = [0.0]
    inner = syncing._round

    def timed() -> None:
        began = time.thread_time()
        inner()
        spent[0] += time.thread_time() - began
        operations.append("look")

    syncing._round = timed  # type: ignore[method-assign]
    until(lambda: len(operations) >= 3)
    assert syncing.stop(60.0)
    # 10 s lie between two looks in a job: this is a tenth of a percent of a core.
    assert spent[0] / len(operations) < 0.02
    assert contents(tmp_path / "job") == {}


def test_other_tasks_have_their_own_place_at_the_path(store: LocalStore, tmp_path: Path) -> None:
    config = make_config(sync_interval=0.2, checkpoint_path=str(tmp_path / "path"))
    for task, chief in (("worker:0", True), ("worker:1", False)):
        scratch = make_scratch(tmp_path / task.replace(":", "-"), config)
        syncing = SyncThread(store, scratch, config, task, 1, 1, Quiet(), chief=chief)
        syncing.start()
        write(scratch.outputs["checkpoints"], {"shard.pt": task.encode()})
        assert syncing.stop(60.0)
    assert (tmp_path / "path/shard.pt").read_bytes() == b"worker:0"
    (tmp_path / "job-2").mkdir()
    fresh = LocalStore(str(tmp_path / "job-2"))
    for task, expected in (
        ("worker:0", b"worker:0"),
        ("worker:1", b"worker:1"),
        ("worker:2", b"worker:0"),
    ):
        scratch = make_scratch(tmp_path / f"new-{task[-1]}", config)
        restore(fresh, scratch, config, task, "worker:0")
        assert contents(scratch.outputs["checkpoints"]) == {"shard.pt": expected}
    assert JOB_ID.startswith("data")
    assert os.path.isdir(tmp_path / "path/.submarine")
