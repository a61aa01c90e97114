"""Checkpoints in parts after faults, with a program that writes them as PyTorch does.

The program is of the standard library only, so that these tests are short; those with the real
libraries are in ``test_library_checkpoints``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from submarine_runtime.protocol import JobRecord, State
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.waiting import until

#: Each rank writes one part of each checkpoint, then rank 0 writes ``.metadata`` with the names of
#: all. It reads all parts of the newest checkpoint at its start.
PROGRAM = """
import os, pickle, time
place, barrier = os.environ["SUBMARINE_CHECKPOINT_DIR"], BARRIER
epoch, rank = int(os.environ["SUBMARINE_EPOCH"]), int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])

def write(path, data):
    with open(path + ".tmp", "wb") as file:
        file.write(data)
    os.rename(path + ".tmp", path)

def meet(name):
    write(f"{barrier}/e{epoch}-{name}-{rank}", b"")
    while not all(os.path.exists(f"{barrier}/e{epoch}-{name}-{one}") for one in range(world)):
        time.sleep(0.02)

step = max([int(name[5:]) for name in os.listdir(place) if name.startswith("step_")], default=0)
if step:
    with open(f"{place}/step_{step}/.metadata", "rb") as file:
        parts = pickle.load(file)
    for part in parts:
        with open(f"{place}/step_{step}/{part}") as file:
            assert file.read() == str(step), part
write(f"{barrier}/begin-{epoch}-{rank}", str(step).encode())
while step < LAST:
    step += 4
    folder = f"{place}/step_{step}"
    os.makedirs(folder, exist_ok=True)
    meet(f"save-{step}")
    with open(f"{folder}/__{rank}_0.distcp", "w") as file:
        if KIND == "full" and (epoch, step, rank) == (1, 8, 1):
            time.sleep(2)  # the other part is complete and is uploaded
            raise OSError(28, "No space left on device")
        file.write(str(step))
    meet(f"saved-{step}")
    if rank == 0:
        names = [f"__{one}_0.distcp" for one in range(world)]
        write(f"{folder}/.metadata", pickle.dumps(names))
    meet(f"done-{step}")
    while KIND == "held" and (epoch, step) == (1, 8):
        time.sleep(0.1)
    time.sleep(PAUSE)
"""


def begin(gang: GangProcesses, kind: str, workers: int = 2, last: int = 12, **config: Any) -> Path:
    """Start a job; return the directory in which its workers say where they begin."""
    barrier = gang.root / "barrier"
    barrier.mkdir()
    source = PROGRAM
    for name, value in (("BARRIER", str(barrier)), ("KIND", kind), ("PAUSE", 2.5), ("LAST", last)):
        source = source.replace(name, repr(value))
    settings = {"framework": "pytorch", "sync_interval": 0.5, **config}
    agent = {"framework": "pytorch"}
    gang.prepare(source, [make_role("worker", workers)], agent=agent, **settings)
    gang.start()
    return barrier


def begun(barrier: Path, epoch: int) -> list[int]:
    return [int(path.read_text()) for path in sorted(barrier.glob(f"begin-{epoch}-?"))]


def ended(gang: GangProcesses) -> JobRecord:
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    return record


def rules(record: JobRecord) -> list[tuple[str, Any]]:
    found = [event.data for event in record.events if event.kind == "restore_point"]
    return [(point["rule"], point["step"]) for point in found]


def test_a_full_disk_during_a_checkpoint_restores_the_one_before(gang: GangProcesses) -> None:
    barrier = begin(gang, "full")
    record = ended(gang)
    assert rules(record) == [("union", [4])]
    assert begun(barrier, 2) == [4, 4]
    assert "No space left on device" in "".join(event.detail for event in record.events)


@pytest.mark.full
def test_a_lost_agent_restores_a_complete_checkpoint(gang: GangProcesses) -> None:
    barrier = begin(gang, "held")
    until(lambda: (barrier / "e1-done-8-1").exists(), gang.story)
    os.kill(gang.agent("worker:1").pid, signal.SIGKILL)
    record = ended(gang)
    ((rule, step),) = rules(record)
    assert (rule, step) in (("union", [4]), ("union", [8]))
    assert begun(barrier, 2) == [step[0]] * 2


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 3])
def test_another_number_of_workers_continues_the_job(
    gang: GangProcesses, tmp_path: Path, workers: int
) -> None:
    begin(gang, "first")
    ended(gang)
    (tmp_path / "next").mkdir()
    following = GangProcesses(tmp_path / "next")
    try:
        old = str(gang.job_dir)
        barrier = begin(following, "next", workers, 16, restore_from=old)
        assert rules(ended(following)) == [("union", [12])]
        assert begun(barrier, 1) == [12] * workers
    finally:
        following.stop_all()
