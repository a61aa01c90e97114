"""Activity of a program: what counts, for which process, and when it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from submarine_runtime.agent.measurement import Activity
from submarine_runtime.processes import Process
from submarine_runtime.protocol import IdleLimit


class Clock:
    """Samples every two seconds, with the CPU seconds of each process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ranks: dict[int, int], **limits: Any):
        self.now = 100.0
        self.reports: list[tuple[str, float]] = []
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        words = {"stall": IdleLimit(60.0), "idle_gpu": IdleLimit(), **limits}
        report = lambda what, seconds: self.reports.append((what, seconds))  # noqa: E731
        self.activity = Activity(report=report, ranks=lambda members: ranks, **words)
        self.cpu = {10: 0.0, 11: 0.0, 12: 0.0}
        self.shared: object = 0

    def run(
        self,
        seconds: float,
        busy: Sequence[int] = (),
        share: float = 1.0,
        gpus: Any = (),
        runnable: bool = False,
    ) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 2.0
            for pid in busy:
                self.cpu[pid] += 2.0 * share
            # Process 12 is a child of 11; both are children of the program 10.
            parents = {10: 1, 11: 10, 12: 11}
            members = {
                pid: Process(parent, 10, 10, 0, 0, self.cpu[pid], False, runnable)
                for pid, parent in parents.items()
            }
            self.activity.update(10, members, self.shared, gpus)


def test_a_quiet_program_is_reported_once_and_its_next_activity_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, {})
    clock.run(58)
    assert not clock.reports
    clock.run(60)
    assert clock.reports == [("program", 60.0)]
    clock.shared = 1
    clock.run(2)
    assert clock.reports == [("program", 60.0), ("program", 0.0)]


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_long_quiet_computation_is_activity(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    clock = Clock(monkeypatch, {})
    clock.run(600, busy=[12], share=share)
    assert not clock.reports


def test_threads_that_only_look_are_no_activity(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, {})
    clock.run(80, busy=[10], share=0.005)
    assert [what for what, _ in clock.reports] == ["program"]


def test_a_process_that_gets_no_cpu_is_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, {})
    clock.run(200, runnable=True)
    assert not clock.reports
    for _ in range(10):  # Seen running once in a while by chance.
        clock.run(2, runnable=True)
        clock.run(8)
    assert [what for what, _ in clock.reports] == ["program"]


def test_a_spinning_rank_does_not_hide_a_quiet_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, {0: 11, 1: 12})
    clock.run(80, busy=[11])
    assert [what for what, _ in clock.reports] == ["program"]
    assert clock.activity.quiet()[0] < 10 < 60 <= clock.activity.quiet()[1]


def test_the_children_of_a_rank_count_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, {0: 11})
    clock.run(200, busy=[12])
    assert not clock.reports


def test_a_gpu_counts_for_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, {0: 11, 1: 12})
    clock.run(80, gpus=[40.0, 0.0])
    assert [what for what, _ in clock.reports] == ["program"]
    quiet = clock.activity.quiet()
    assert quiet[0] == 0
    assert quiet[1] >= 60


def test_idle_gpus_are_all_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"stall": IdleLimit(), "idle_gpu": IdleLimit(30.0)}
    clock = Clock(monkeypatch, {}, **limits)
    clock.run(100, gpus=[3.0, 60.0])
    clock.run(100, gpus=[None, 0.0])  # A driver that does not answer is not idle.
    clock.run(100)
    assert not clock.reports
    clock.run(36, gpus=[4.0, 0.0])
    assert [what for what, _ in clock.reports] == ["gpus"]
    clock.run(2, gpus=[4.0, 9.0])
    assert clock.reports[-1] == ("gpus", 0.0)
