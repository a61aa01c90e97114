"""Suspends of the machine, with real processes: SIGSTOP stops them and the clock is injected.

A real suspend would stop the tests too. A stopped process differs in two ways: its CLOCK_MONOTONIC
goes on, which the injected clock corrects, and the waits that it was in end when it continues.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from submarine_runtime.protocol import State
from submarine_runtime.suspend import TEST_VARIABLE
from tests.configurations import make_role
from tests.local.agent.agent_processes import AgentProcesses
from tests.local.coordinator.gang_processes import GangProcesses
from tests.waiting import until

LOST_AFTER = 4.0
#: Writes a checkpoint each 0.2 s until the file named by the argument exists.
WRITER = """
import os, time
place = os.environ["SUBMARINE_CHECKPOINT_DIR"]
number = 0
while not os.path.exists({go!r}):
    number += 1
    with open(os.path.join(place, "new"), "w") as file:
        file.write(str(number))
    os.rename(os.path.join(place, "new"), os.path.join(place, "state"))
    print(number, flush=True)
    time.sleep(0.2)
"""


class Clocks:
    """Stops processes as a suspend of their machine would, and lets them continue."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._since: dict[int, float] = {}

    def suspend(self, processes: list[psutil.Process]) -> None:
        for process in processes:
            self._since[process.pid] = time.monotonic()
            process.suspend()

    def resume(self) -> None:
        for pid, since in self._since.items():
            stopped = time.monotonic() - since
            (self._directory / str(pid)).write_text(f"{stopped:.3f}")
        for pid in self._since:
            with suppress(ProcessLookupError):  # one that continued first may have ended it
                os.kill(pid, signal.SIGCONT)
        self._since.clear()


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    directory = tmp_path / "clocks"
    directory.mkdir()
    monkeypatch.setenv(TEST_VARIABLE, str(directory))
    return Clocks(directory)


def with_children(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def files_of(directory: Path) -> dict[str, float]:
    """Path -> time of change of all published files of a directory."""
    found = (path for path in directory.rglob("[!.]*") if path.is_file())
    return {str(path): path.stat().st_mtime for path in found}


def test_a_resumed_agent_writes_nothing_until_the_coordinator_confirms_it(
    gang: GangProcesses, clocks: Clocks, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    gang.prepare(
        WRITER.format(go=str(go)),
        [make_role("worker", 2)],
        {"sync_interval": 0.3, "ship_interval": 0.3},
    )
    gang.start()
    gang.wait_for_state("RUNNING")
    old = gang.job_dir / "snapshots/worker-1/e1-a1"
    logs = gang.job_dir / "logs/worker-1/e1-a1"
    until(lambda: list(old.glob("*.json")) and logs.exists())
    clocks.suspend(with_children(gang.agent("worker:1")))
    time.sleep(3.0)
    # Without an answer the resumed agent cannot know whether its task was given away.
    (coordinator,) = gang.processes("coordinator")
    coordinator.suspend()
    before = {**files_of(old), **files_of(logs)}
    began = time.monotonic()
    clocks.resume()
    while time.monotonic() < began + 2.0:  # several sync intervals
        assert {**files_of(old), **files_of(logs)} == before
        time.sleep(0.05)
    coordinator.resume()
    until(lambda: files_of(old).keys() - before.keys())
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1), gang.story()
    assert [task.restarts for task in record.tasks] == [0, 0], gang.story()


@pytest.mark.full
def test_a_suspend_of_the_whole_machine_is_no_fault(
    gang: GangProcesses, clocks: Clocks, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    gang.prepare(
        WRITER.format(go=str(go)),
        [make_role("worker", 2)],
        {"sync_interval": 0.3},
        lost_after=LOST_AFTER,
    )
    gang.start()
    gang.wait_for_state("RUNNING")
    old = gang.job_dir / "snapshots/worker-1/e1-a1"
    until(lambda: list(old.glob("*.json")))
    assert gang.supervisor is not None
    clocks.suspend(with_children(psutil.Process(gang.supervisor.pid)))
    # Longer than any deadline: the agents', the coordinator's, and the supervisor's for a pulse.
    time.sleep(12.0)
    clocks.resume()
    before = files_of(old)
    until(lambda: files_of(old).keys() - before.keys())
    go.touch()
    record = gang.wait()
    assert (record.state, record.epoch) == (State.SUCCEEDED, 1), gang.story()
    assert [task.restarts for task in record.tasks] == [0, 0], gang.story()
    assert "started again" not in (tmp_path / "coordinator.log").read_text()


def single(agents: AgentProcesses, clocks: Clocks, go: Path) -> subprocess.Popen[bytes]:
    agent = agents.start(WRITER.format(go=str(go)), sync_interval=0.3, ship_interval=0.3)
    until(lambda: list((agents.job_dir / "snapshots").rglob("*.json")))
    clocks.suspend(with_children(psutil.Process(agent.pid)))
    return agent


def test_a_resumed_single_task_goes_on_where_nothing_replaced_it(
    agents: AgentProcesses, clocks: Clocks, tmp_path: Path
) -> None:
    agent = single(agents, clocks, tmp_path / "go")
    time.sleep(1.0)
    before = files_of(agents.job_dir)
    clocks.resume()
    until(lambda: files_of(agents.job_dir).keys() - before.keys())
    (tmp_path / "go").touch()
    assert agents.finish(agent) == 0
    assert agents.record().state is State.SUCCEEDED


def test_a_resumed_single_task_writes_nothing_beside_a_later_claim(
    agents: AgentProcesses, clocks: Clocks, tmp_path: Path
) -> None:
    agent = single(agents, clocks, tmp_path / "go")
    (agents.job_dir / "claim-3.json").write_text(json.dumps({"nonce": "other"}))
    time.sleep(1.0)
    before = files_of(agents.job_dir)
    clocks.resume()
    assert agents.finish(agent) == 1
    assert files_of(agents.job_dir) == before
    assert "has been replaced" in agents.errors
