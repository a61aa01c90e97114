"""Reactions to programs without activity and to idle GPUs, in the simulation."""

from __future__ import annotations

from typing import Any

from submarine_runtime.coordinator.machine import Action, Stage, TakeStacks
from submarine_runtime.protocol import EndReason, IdleLimit
from tests.unit.coordinator.simulation import Simulation, orders, role, run_to_end

RESTART = IdleLimit(600.0, "restart")


class StallSimulation(Simulation):
    """Answers requests for stacks by ``report``."""

    def __init__(self, *roles: Any, **config: Any) -> None:
        self.asked: list[TakeStacks] = []
        self.report: dict[str, Any] = {"stalled": True, "tasks": ["worker:1"]}
        super().__init__(orders(*(roles or (role("worker", 3),)), **config))
        self.run(self.all_running)

    def do(self, action: Action) -> None:
        super().do(action)
        if isinstance(action, TakeStacks):
            self.asked.append(action)
            words = {"sentence": "rank 1 hangs.", "again": 50.0, "data": {"waits_for": "rank 1"}}
            report = {**words, **self.report, "type": "stacks", "epoch": action.epoch}
            self.handle(report)

    def idle(self, task: str, seconds: float = 600.0, what: str = "program") -> None:
        agent = self.agent(task)
        epoch, attempt = agent.running or (0, 0)
        line = {"what": what, "seconds": seconds, "epoch": epoch, "attempt": attempt}
        self.say(agent, type="idle", **line)

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.step()

    def details(self, kind: str) -> list[str]:
        return [note.detail for note in self.notes if note.kind == kind]


def test_a_stall_is_reported_once_while_it_lasts() -> None:
    sim = StallSimulation(stall=IdleLimit(600.0))
    sim.idle("worker:1")
    sim.idle("worker:0")
    sim.wait(100)
    assert sim.details("stall") == ["rank 1 hangs."]
    assert [action.running for action in sim.asked] == [("worker:0", "worker:1", "worker:2")]
    assert sim.all_running()
    sim.idle("worker:0", 0)
    sim.idle("worker:1", 0)
    sim.wait(5)
    sim.idle("worker:2")
    sim.wait(5)
    assert len(sim.details("stall")) == 2
    assert run_to_end(sim) is EndReason.SUCCEEDED


def test_tasks_that_wait_for_an_active_one_are_asked_about_again() -> None:
    sim = StallSimulation(stall=RESTART)
    sim.report["stalled"] = False
    sim.idle("worker:0")
    sim.wait(40)
    assert len(sim.asked) == 1
    sim.wait(20)
    assert len(sim.asked) == 2
    assert not sim.details("stall")
    sim.idle("worker:0", 0)
    sim.wait(100)
    assert len(sim.asked) == 2
    assert sim.job.epoch == 1


def test_a_stall_restarts_the_gang_in_its_containers_up_to_the_limit() -> None:
    sim = StallSimulation(stall=RESTART, max_restarts=2)
    for epoch in (2, 3):
        sim.idle("worker:1")
        sim.wait(5)
        sim.run(sim.all_running)
        assert sim.job.epoch == epoch
    assert len(sim.requests) == 3
    [first, _second] = [note for note in sim.notes if note.kind == "restart"]
    assert first.data["reason"] == "stalled"
    assert "--stall restarts the gang; restart 1 of 2." in first.detail
    sim.idle("worker:1")
    sim.run(lambda: sim.ended, 60)
    assert sim.reason() is EndReason.STALLED


def test_a_stall_of_a_gang_that_restarts_in_place_restarts_the_gang() -> None:
    sim = StallSimulation(stall=RESTART, restart_in_place=True)
    sim.idle("worker:1")
    sim.wait(5)
    sim.run(sim.all_running)
    assert [start.epoch for start in sim.starts] == [1, 1, 1, 2, 2, 2]


def test_a_program_that_has_ended_is_named_to_the_collector() -> None:
    sim = StallSimulation(stall=IdleLimit(600.0), policy="all")
    sim.finish(sim.agent("worker:2"), "succeeded", exit_code=0)
    sim.step()
    sim.idle("worker:1")
    sim.wait(5)
    [asked] = sim.asked
    assert (asked.running, asked.ended) == (("worker:0", "worker:1"), ("worker:2",))


def test_reports_of_an_earlier_epoch_have_no_effect() -> None:
    sim = StallSimulation(stall=RESTART)
    agent = sim.agent("worker:1")
    sim.kill("worker:0")
    sim.run(lambda: sim.job.epoch == 2 and sim.all_running())
    sim.say(agent, type="idle", what="program", seconds=600.0, epoch=1, attempt=1)
    sim.wait(10)
    assert not sim.asked
    sim.handle({"type": "stacks", "epoch": 1, "stalled": True, "sentence": "x", "tasks": []})
    assert sim.job.epoch == 2


def test_a_restarted_coordinator_takes_the_stacks_again() -> None:
    sim = StallSimulation(stall=IdleLimit(600.0))
    sim.idle("worker:1")
    sim.step()
    sim.job.stall_check = None  # As while the stacks were taken.
    sim.handle({"type": "resumed"})
    for agent in list(sim.agents.values()):
        sim.register(agent, {"epoch": 1, "attempt": 1, "state": "running"})
    sim.wait(5)
    assert len(sim.details("stall")) == 1


def test_idle_gpus_end_the_job_when_all_of_its_tasks_have_idle_ones() -> None:
    roles = (role("worker", 2, gpus=1), role("ps", kind="untracked"))
    sim = StallSimulation(*roles, idle_gpu=IdleLimit(60.0, "end"))
    sim.idle("worker:0", 60, "gpus")
    sim.wait(10)
    assert sim.all_running()
    sim.idle("worker:1", 61, "gpus")
    sim.run(lambda: sim.ended, 60)
    assert sim.reason() is EndReason.IDLE_GPU
    assert sim.details("verdict") == ["The GPUs of worker:0, worker:1 were below 5 % for 61 s."]


def test_idle_gpus_are_warned_of_once_each_time() -> None:
    sim = StallSimulation(role("worker", 2, gpus=1), idle_gpu=IdleLimit(60.0))
    for _ in range(2):
        for task in ("worker:0", "worker:1"):
            sim.idle(task, 60, "gpus")
        sim.wait(30)
        sim.idle("worker:0", 0, "gpus")
        sim.wait(5)
    assert len(sim.details("idle_gpu")) == 2
    assert all(task.stage is Stage.RUNNING for task in sim.tasks)
