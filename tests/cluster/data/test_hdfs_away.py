"""Coordinator and agents while HDFS does not answer."""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.access import AgentAddress, AgentClient
from submarine_jobs.backends.yarn import YarnBackend
from submarine_jobs.model import Profile
from submarine_runtime.protocol import STORE_UNAVAILABLE_CODE, State
from tests.cluster.data.hdfs_gang_processes import HdfsGangProcesses
from tests.local.coordinator.library_training import EVERY, Training, points, undisturbed
from tests.local.coordinator.test_distributed_coordinator import WORKERS, counter
from tests.waiting import until

pytestmark = pytest.mark.cluster


@pytest.fixture
def gang(tmp_path: Path, yarn_profile: Profile) -> Iterator[HdfsGangProcesses]:
    storage, root = YarnBackend(yarn_profile).job_root()
    made = HdfsGangProcesses(tmp_path, storage, f"{root}/202611/gang-{secrets.token_hex(4)}")
    storage.publish(f"{made.place}/intent.json", b"{}")
    yield made
    made.stop_all()


@pytest.fixture
def go(tmp_path: Path) -> Path:
    return tmp_path / "go"


def test_a_restarted_coordinator_answers_its_agents_while_hdfs_is_away(
    gang: HdfsGangProcesses, go: Path
) -> None:
    """HDFS is away for longer than an agent waits for its coordinator."""
    gang.prepare(counter(40, go), WORKERS, lost_after=3.0, lost_margin=1.0)
    gang.start()
    gang.wait_for_state("RUNNING")
    programs = {gang.program(task) for task in ("worker:0", "worker:1")}
    gang.proxy.close()
    coordinator = gang.processes("coordinator")[0]
    coordinator.kill()
    coordinator.wait(60)
    gang.wait_for_event("coordinator", "restarted")
    time.sleep(5.0)
    assert {gang.program(task) for task in ("worker:0", "worker:1")} == programs
    gang.proxy.open()
    gang.wait_for_event("storage", "for HDFS")
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1), gang.story()
    assert all((task.restarts, task.attempt) == (0, 1) for task in record.tasks)
    assert gang.log("worker:1").splitlines()[-1] == "step 40"


@pytest.mark.full
def test_nothing_starts_before_a_restarted_coordinator_has_checked_its_claim(
    gang: HdfsGangProcesses, go: Path
) -> None:
    gang.prepare(counter(40, go), WORKERS, restart_in_place=True)
    gang.start()
    gang.wait_for_state("RUNNING")
    gang.proxy.close()
    coordinator = gang.processes("coordinator")[0]
    coordinator.kill()
    gang.wait_for_event("coordinator", "restarted")
    os.kill(gang.program("worker:1"), 9)
    gang.wait_for_event("restart", "worker:1")
    journal = gang.scratch / "journal.jsonl"

    def checked() -> bool:
        return b'"type": "checked"' in journal.read_bytes()

    def attempts() -> set[int]:
        told = [e for e in gang.events() if (e["kind"], e["task"]) == ("task", "worker:1")]
        return {event["data"]["task"]["attempt"] for event in told}

    time.sleep(3.0)
    assert not checked()
    assert attempts() == {1}
    gang.proxy.open()
    until(checked)
    go.touch()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert record.tasks[1].attempt == 2


@pytest.mark.full
@pytest.mark.parametrize("ended", [False, True])
def test_a_coordinator_that_starts_while_hdfs_is_away_waits(
    gang: HdfsGangProcesses, go: Path, ended: bool
) -> None:
    """``ended``: the programs have ended before, and what they made is in their containers."""
    gang.prepare(counter(10, go if ended else ""), WORKERS, save_grace=120.0)
    if not ended:
        gang.proxy.close()
    gang.start()
    if ended:
        gang.wait_for_state("RUNNING")
        programs = [gang.program(task) for task in ("worker:0", "worker:1")]
        live = json.loads(gang.storage.read(f"{gang.place}/live.json"))
        job = AgentClient(AgentAddress("127.0.0.1", live["port"], gang.secret))
        gang.proxy.close()
        go.touch()
        until(lambda: not any(Path(f"/proc/{pid}/cwd").exists() for pid in programs))
        until(lambda: "worker:0 and 1 more: waiting for HDFS (" in job.status().pending)
        gang.processes("coordinator")[0].kill()
        gang.wait_for_event("coordinator", "restarted")
    until(lambda: "waiting for HDFS" in (gang.root / "coordinator.log").read_text())
    time.sleep(3.0)
    gang.proxy.open()
    record = gang.wait()
    assert record.state is State.SUCCEEDED, gang.story()
    assert (gang.job_dir / "model/model").read_text() == "10"
    assert any("waited" in e.detail for e in record.events if e.kind == "storage")
    assert record.pending == ""


def test_a_wait_for_hdfs_that_is_too_long_is_named(gang: HdfsGangProcesses) -> None:
    gang.prepare(counter(10), WORKERS, save_grace=3.0)
    gang.proxy.close()
    gang.start()
    assert gang.supervisor is not None
    assert gang.supervisor.wait(60) == STORE_UNAVAILABLE_CODE
    assert "HDFS did not answer for 3 s" in (gang.root / "coordinator.log").read_text()
    assert not gang.processes("agent")


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("kind", ["steps", "hf"])
def test_hdfs_away_for_a_minute_during_a_checkpoint_of_a_library(
    gang: HdfsGangProcesses, kind: str, back: bool
) -> None:
    """``back``: a worker is killed just after HDFS is back, otherwise while it is away."""
    steps = 96 if back else 24
    training = Training(gang, kind, steps, pause=1.0 if back else 0.5, save_grace=300.0)
    worker = f"tasks/worker-1.*/output/checkpoints/**/*{3 * EVERY}/*"
    training.wait_for(lambda: next(gang.scratch.glob(worker), None))
    gang.proxy.close()
    away = time.monotonic()
    if not back:
        training.until_step(3 * EVERY + 2)
        os.kill(gang.program("worker:1"), signal.SIGKILL)
    time.sleep(max(0.0, away + 60.0 - time.monotonic()))
    gang.proxy.open()
    if back:
        step = int(training.said("step", 1) or 0)
        training.until_step(step + EVERY - step % EVERY + 2)
        os.kill(gang.program("worker:1"), signal.SIGKILL)
    begun = training.begun(2)
    training.check_found(2)
    record, loss = training.end()
    assert loss == pytest.approx(undisturbed(kind, steps), rel=1e-6)
    assert [(point["rule"], point["step"]) for point in points(record)] == [("union", [begun])]
