"""The gate for writes after a suspend with an injected clock, and a suspended coordinator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_runtime.agent.link.silence_watchdog import AFTER_SUSPEND, SilenceWatchdog
from submarine_runtime.cluster_http import simple_access
from submarine_runtime.storage import LocalStore, StoreError, WebHdfsStore, WriteGate
from submarine_runtime.suspend import SuspendMeter, monotonic, suspended
from tests.unit.coordinator.simulation import Simulation, orders, role, run_to_end
from tests.waiting import until

Sleep = Callable[[float], None]


@pytest.fixture
def sleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sleep:
    """Suspend the clocks of this process for some seconds."""
    clocks = tmp_path / "clocks"
    clocks.mkdir()
    monkeypatch.setattr("submarine_runtime.suspend._directory", str(clocks))

    def suspend(seconds: float) -> None:
        (clocks / str(os.getpid())).write_text(str(seconds))

    return suspend


def test_a_suspend_increases_the_difference_of_the_clocks(sleep: Sleep) -> None:
    meter, before, now = SuspendMeter(), suspended(), monotonic()
    assert meter.seconds() == 0.0
    sleep(100.0)
    assert suspended() - before == pytest.approx(100.0, abs=1.0)
    assert monotonic() < now
    assert meter.seconds() == pytest.approx(100.0, abs=1.0)
    meter.reset()
    assert meter.seconds() == 0.0


def test_an_answer_to_an_older_line_does_not_open_the_gate(sleep: Sleep) -> None:
    gate, before = WriteGate(), suspended()
    gate.check()
    sleep(60.0)
    with pytest.raises(StoreError, match="suspended") as refused:
        gate.check()
    assert refused.value.transient
    gate.confirm(before)
    assert gate.closed
    gate.confirm(suspended())
    gate.check()


def test_the_job_directory_decides_without_a_coordinator(sleep: Sleep) -> None:
    asked: list[str] = []
    answers: Iterator[bool | StoreError] = iter([StoreError("HDFS is away", True), True, False])

    def may_continue() -> bool:
        asked.append("")
        answer = next(answers)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    gate = WriteGate(may_continue)
    gate.check()
    assert not asked
    sleep(60.0)
    with pytest.raises(StoreError, match="away"):
        gate.check()
    gate.check()
    gate.check()
    assert len(asked) == 2
    sleep(120.0)
    for _ in range(2):
        with pytest.raises(StoreError, match="replaced") as refused:
            gate.check()
        assert not refused.value.transient
    assert len(asked) == 3


def test_a_closed_gate_prevents_each_change_of_a_store(sleep: Sleep, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    # The gate is checked first: no WebHDFS is needed.
    webhdfs = WebHdfsStore(["http://127.0.0.1:1"], "/job", simple_access("ada"), 1.0)
    for store in (LocalStore(str(tmp_path)), webhdfs):
        gate = WriteGate()
        store.gate = gate.check
        sleep(suspended() + 60.0)
        changes: list[tuple[Callable[..., object], tuple[object, ...]]] = [
            (store.publish, ("file", b"new")),
            (store.publish_exclusive, ("other", b"new")),
            (store.put, ("file", [b"new"], 3)),
            (store.upload, ("file", str(tmp_path / "file"))),
            (store.move, ("file", "other")),
            (store.delete, ("file",)),
            (store.make_directory, ("made",)),
        ]
        for change, arguments in changes:
            with pytest.raises(StoreError, match="suspended"):
                change(*arguments)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["clocks", "file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_suspend_counts_as_missing_heartbeats_but_leaves_time_to_reconnect(sleep: Sleep) -> None:
    watchdog = SilenceWatchdog(lambda: None)
    try:
        sleep(2000.0)
        watchdog.acknowledged(monotonic(), 1000.0)
        until(lambda: (watchdog.deadline or 0.0) - monotonic() <= AFTER_SUSPEND)
        assert not watchdog.fired
    finally:
        watchdog.stop()


def test_a_suspended_coordinator_waits_for_its_agents() -> None:
    sim = Simulation(orders(role("worker", 2), lost_after=25.0))
    sim.run(sim.all_running)
    sim.now += 24.0
    sim.handle({"type": "suspended", "seconds": 3600.0})
    assert [task.last_contact for task in sim.tasks] == [sim.now, sim.now]
    assert run_to_end(sim).value == "succeeded"
    assert len(sim.starts) == 2
