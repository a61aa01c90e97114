"""Checkpoints that the tasks of a gang write in parts, with the real libraries.

A process is killed at a random step. The gang restarts at a common step, every task finds the files
of all tasks with the library's own call, and the job ends with the loss of an undisturbed run.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.protocol import EndReason, JobRecord
from tests.local.coordinator.gang_processes import GangProcesses
from tests.local.coordinator.library_training import (
    EVERY,
    STEPS,
    Training,
    points,
    undisturbed,
)

#: Imports take minutes of a busy machine.
pytestmark = pytest.mark.timeout(1800)
#: Random kills of each library; fewer for a first look.
KILLS = int(os.environ.get("SUBMARINE_TEST_KILLS", "10"))
#: Fills a disk. The process that fails reports the files that it leaves, and the agent has time to
#: find them before it ends.
FULL = """
import sys

def fill(spare=0):
    with open(DISK + "/filler", "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            file.truncate(file.tell() - spare)

def wait_for(report):
    while not os.path.exists(f"{barrier}/e1-{report}"):
        time.sleep(0.02)

def report_failure(kind, error, traceback):
    say("cut", digests())
    time.sleep(3)
    sys.__excepthook__(kind, error, traceback)

sys.excepthook = report_failure
"""
#: The part of a worker, and the file that the first worker writes when all parts are complete.
FULL_DISKS = {
    "steps part": """
def before_save(step):
    if (epoch, step, rank) == (1, 8, 1):
        fill(4096)
""",
    "steps marker": """
def before_save(step):
    if (epoch, step, rank) == (1, 8, 0):
        from torch.distributed.checkpoint import FileSystemWriter
        finish = FileSystemWriter.finish
        FileSystemWriter.finish = lambda self, **words: (fill(), finish(self, **words))
""",
    "hf part": """
def before_save(step):
    if (epoch, step, rank) == (1, 8, 1):
        save = Trainer._save_rng_state
        Trainer._save_rng_state = lambda *words: (wait_for("0-saved-8"), fill(4096), save(*words))
""",
    "hf empty-part": """
def before_save(step):
    if (epoch, step, rank) == (1, 8, 1):
        save = Trainer._save_rng_state
        Trainer._save_rng_state = lambda *words: (wait_for("0-saved-8"), fill(), save(*words))
""",
    "hf marker": """
def before_save(step):
    if (epoch, step, rank) == (1, 8, 0):
        from transformers import TrainerState
        save = TrainerState.save_to_json
        TrainerState.save_to_json = lambda *words: (wait_for("1-saved-8"), fill(), save(*words))
""",
}
#: One task writes these; each task writes a part of the others.
ONE_WRITER = ("ddp", "lightning")


def killed(
    gang: GangProcesses, kind: str, kills: int, seed: int, steps: int = STEPS
) -> tuple[JobRecord, float]:
    """Kill a worker ``kills`` times; the first time after a checkpoint, later at any step."""
    training, dice = Training(gang, kind, steps), random.Random(seed)
    begun, ended = [training.begun(1)], []
    for epoch in range(1, kills + 1):
        least = begun[-1] + (EVERY + 2 if epoch == 1 else 1)
        ended.append(training.kill(dice, epoch, least))
        begun.append(training.begun(epoch + 1))
    record, loss = training.end()
    # The figures of a long run, with `pytest -s`.
    print(f"{kind}: killed at steps {ended}, began at steps {begun}, loss {loss:.9g}")
    assert begun == sorted(begun)
    assert begun[-1] > 0, gang.story()
    assert all(before <= after + 1 for before, after in zip(begun[1:], ended, strict=True))
    rule = "chief" if kind in ONE_WRITER else "union"
    assert [point["rule"] for point in points(record)] == [rule] * kills
    assert record.warnings == []
    return record, loss


def test_a_sharded_checkpoint_is_resumed_by_all_tasks(gang: GangProcesses) -> None:
    record, loss = killed(gang, "steps", 1, 1)
    assert loss == pytest.approx(undisturbed("steps"), rel=1e-6)
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    assert "the files of all tasks at step" in point.detail
    # Each task has uploaded its own parts only.
    saved = [path.relative_to(gang.job_dir) for path in gang.job_dir.rglob("*.distcp")]
    assert len(saved) == len({path.parts[-2:] for path in saved})


@pytest.mark.full
@pytest.mark.parametrize("kind", ["hf", "lightning"])
def test_a_library_resumes_from_its_default_directory(gang: GangProcesses, kind: str) -> None:
    record, loss = killed(gang, kind, 1, 2)
    assert loss == pytest.approx(undisturbed(kind), rel=1e-6)
    assert not [sentence for sentence in record.warnings if "was not saved" in sentence]
    top = "lightning_logs" if kind == "lightning" else "out"
    assert list((gang.job_dir / "checkpoints" / top).rglob("*"))


@pytest.mark.full
@pytest.mark.parametrize("kind", ["same", "accelerate"])
def test_other_ways_to_save(gang: GangProcesses, kind: str) -> None:
    _record, loss = killed(gang, kind, 2, 3)
    assert loss == pytest.approx(undisturbed(kind), rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["ddp", "steps", "lightning", "hf", "accelerate", "deepspeed"])
def test_ten_kills_do_not_change_the_loss(gang: GangProcesses, kind: str) -> None:
    # Each restart may go forward by two checkpoints and a bit.
    steps = (KILLS + 2) * 2 * EVERY
    _record, loss = killed(gang, kind, KILLS, 4, steps)
    assert loss == pytest.approx(undisturbed(kind, steps), rel=1e-6)


def train_on_a_full_disk(gang: GangProcesses, disk: Path, case: str, **settings: Any) -> Training:
    """Start a training whose ``disk`` is full during its second checkpoint."""
    (gang.scratch / "tasks").symlink_to(disk)
    fault = FULL.replace("DISK", repr(str(disk))) + FULL_DISKS[case]
    return Training(gang, case.split()[0], fault=fault, **settings)


def check_the_first_checkpoint_was_restored(training: Training, record: JobRecord) -> None:
    assert [(point["rule"], point["step"]) for point in points(record)] == [("union", [EVERY])]
    left = [json.loads(training.said("cut", 1, rank) or "{}") for rank in range(2)]
    assert any("8" in files for files in left)
    assert not training.saved("8", 2)


@pytest.mark.full
@pytest.mark.parametrize("case", FULL_DISKS)
def test_a_full_disk_during_a_checkpoint_restores_the_one_before(
    small_disk: Path, gang: GangProcesses, case: str
) -> None:
    training = train_on_a_full_disk(gang, small_disk, case)
    training.wait_for(lambda: any(event["kind"] == "restart" for event in gang.events()))
    (small_disk / "filler").unlink()
    assert training.begun(2) == EVERY, gang.story()
    training.check_found(2)
    record, loss = training.end()
    check_the_first_checkpoint_was_restored(training, record)
    assert loss == pytest.approx(undisturbed(case.split()[0]), rel=1e-6)
    (restart,) = [event for event in record.events if event.kind == "restart"]
    assert restart.data["reason"] == EndReason.DISK_FULL.value


@pytest.mark.full
@pytest.mark.parametrize("case", FULL_DISKS)
def test_a_job_that_failed_on_a_full_disk_continues_from_a_whole_checkpoint(
    small_disk: Path, gang: GangProcesses, tmp_path: Path, case: str
) -> None:
    training = train_on_a_full_disk(gang, small_disk, case, max_restarts=0)
    failed = gang.wait(600)
    assert failed.reason is EndReason.DISK_FULL, gang.story()
    (small_disk / "filler").unlink()
    (tmp_path / "next").mkdir()
    following = GangProcesses(tmp_path / "next")
    try:
        again = Training(following, case.split()[0], restore_from=str(gang.job_dir))
        assert again.begun(1) == EVERY, following.story()
        again.check_found(1, training)
        record, loss = again.end()
    finally:
        following.stop_all()
    check_the_first_checkpoint_was_restored(training, record)
    assert loss == pytest.approx(undisturbed(case.split()[0]), rel=1e-6)
