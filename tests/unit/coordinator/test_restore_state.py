"""Restore points in the machine of a job: choice, reports, common point, rounds, replay."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.coordinator.machine import (
    ChooseRestorePoint,
    RestorePoint,
    SendMessage,
    Snapshot,
    Stage,
    TaskRestore,
    handle,
    new_job_state,
)
from submarine_runtime.coordinator.machine.restore_point import Progress
from submarine_runtime.coordinator.machine.restore_state import (
    predicted_point,
    progress_since_start,
)
from submarine_runtime.protocol.reasons import EndReason
from tests.unit.coordinator.simulation import Simulation, orders, role


class Lines(Simulation):
    """A world that keeps the lines about snapshots."""

    def __init__(self, *roles: Any, **config: Any) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        super().__init__(orders(*roles, **config))

    def do(self, action: Any) -> None:
        if isinstance(action, SendMessage) and action.line["type"] in ("keep", "snapshot"):
            self.lines.append((action.seat, action.line))
        super().do(action)

    def report(self, task: str, number: int, *names: str, **more: Any) -> None:
        made = self.job.tasks[task]
        line = {"type": "snapshot", "seat": made.seat, "epoch": made.epoch, **more}
        line = {"attempt": made.attempt, "number": number, "round": 0, "steps": {}, **line}
        line.setdefault("kept", [number])
        self.handle({**line, "digests": dict.fromkeys(names, 1)})

    def kept(self, task: str, *numbers: int, **more: Any) -> None:
        made = self.job.tasks[task]
        line = {"type": "snapshot", "seat": made.seat, "epoch": made.epoch, **more}
        self.handle({**line, "attempt": made.attempt, "kept": list(numbers)})

    def orders_of(self, task: str, kind: str) -> list[dict[str, Any]]:
        seat = self.job.tasks[task].seat
        return [line for own, line in self.lines if own == seat and line["type"] == kind]


def point(step: int, *tasks: str) -> RestorePoint:
    parts = {task: TaskRestore(Snapshot(task, epoch=1, attempt=1, number=step)) for task in tasks}
    return RestorePoint("own", (step,), None, tasks[0], parts)


def running(*roles: Any, **config: Any) -> Lines:
    world = Lines(*(roles or (role("worker", 2),)), **config)
    world.run(world.all_running)
    return world


def test_a_first_start_asks_for_nothing_and_restores_nothing() -> None:
    world = running()
    assert [start.restore for start in world.starts] == [None, None]
    assert not any(isinstance(action, ChooseRestorePoint) for action in world.job.actions)
    assert world.job.restore.surveying == 0


@pytest.mark.parametrize("where", ["restore_from", "checkpoint_path"])
def test_the_first_start_from_a_job_or_a_path_is_a_choice_too(where: str) -> None:
    world = Lines(role("worker", 2), **{where: "/old"})
    world.points[1] = point(7, "worker:0", "worker:1")
    world.run(world.all_running)
    for start in world.starts:
        assert start.restore is not None
        assert start.restore["part"]["snapshot"]["number"] == 7
    note = next(note for note in world.notes if note.kind == "restore_point")
    assert (note.data["rule"], note.data["step"]) == ("own", (7,))


def test_no_program_starts_before_the_choice_and_all_get_their_part_of_it() -> None:
    world = running(role("worker", 2), role("evaluator"))
    world.points[2] = point(7, "worker:0", "worker:1")
    before = len(world.starts)
    world.answers = False
    world.kill("worker:1")
    world.run(lambda: bool(world.surveys))
    world.step(20.0)
    assert len(world.starts) == before
    assert world.surveys == [2]
    world.answers = True
    world.run(world.all_running)
    parts = {}
    for start in world.starts[before:]:
        assert start.restore is not None
        part = start.restore["part"]
        parts[start.seat.partition(".")[0]] = part and part["snapshot"]["task"]
    assert parts == {"worker-0": "worker:0", "worker-1": "worker:1", "evaluator-0": None}
    sentence = [note.detail for note in world.notes if note.kind == "restore_point"]
    assert sentence == ["Each task restores its own files at step 7 (rule own)."]


def test_warnings_of_the_choice_are_events_and_strict_ends_the_job() -> None:
    world = running(restore="strict")
    world.points[2] = RestorePoint(
        "beginning", warnings=("Nothing is common.",), failure="Nothing."
    )
    world.kill("worker:1")
    world.run(lambda: world.ended)
    assert world.reason() is EndReason.LAUNCH_FAILED
    assert "--restore strict: Nothing." in world.job.verdict.outcome.detail  # type: ignore[union-attr]
    assert "Nothing is common." in [note.detail for note in world.notes if note.kind == "warning"]


def test_a_survey_that_fails_ends_the_job_with_its_sentence() -> None:
    world = running()
    world.answers = False
    world.kill("worker:1")
    world.run(lambda: bool(world.surveys))
    world.handle({"type": "survey_failed", "epoch": 2, "detail": "HDFS does not answer"})
    world.run(lambda: world.ended)
    assert "HDFS does not answer" in world.job.verdict.outcome.detail  # type: ignore[union-attr]


def test_the_gang_waits_for_the_last_snapshots_of_programs_that_it_stopped() -> None:
    world = running()
    agent = world.agent("worker:0")
    world.kill("worker:1")
    agent.outbox = [line for line in agent.outbox if line["type"] != "synced"]
    for _ in range(20):
        world.step()
    assert world.surveys == []
    assert world.job.restore.surveying == 0
    world.say(agent, type="synced", epoch=1, attempt=1)
    world.run(world.all_running)
    assert world.job.epoch == 2


def test_a_damaged_snapshot_is_excluded_and_another_point_is_chosen() -> None:
    world = running()
    world.points[2] = point(7, "worker:0", "worker:1")
    world.points[3] = point(6, "worker:0", "worker:1")
    world.kill("worker:1")
    world.run(world.all_running)
    agent = world.agent("worker:1")
    world.finish(agent, "launch_failed", unrestored=True, retry="no")
    world.run(lambda: world.job.epoch == 3 and world.all_running())
    assert [key[2:] for key in world.job.restore.damaged] == [("worker:1", 1, 1, 7)]
    assert world.job.restarts == 1


def test_a_task_that_restarts_alone_keeps_its_own_newest_snapshot() -> None:
    world = running(restart_in_place=True)
    world.kill("worker:1")
    world.run(world.all_running)
    assert world.starts[-1].restore == {"own": 0, "part": None}
    assert world.starts[-1].alone


def own(world: Lines, task: str, number: int, *steps: int, **more: Any) -> None:
    world.report(task, number, *[f"rank{task[-1]}_step_{step}" for step in steps], **more)


def test_reports_tell_to_which_point_the_gang_would_return() -> None:
    world = running()
    assert progress_since_start(world.job) is Progress.NONE
    own(world, "worker:0", 1, 10)
    own(world, "worker:1", 1, 10)
    assert (predicted_point(world.job).rule, predicted_point(world.job).step) == ("own", (10,))
    assert progress_since_start(world.job) is Progress.STEP
    world.points[2] = predicted_point(world.job)
    world.kill("worker:1")
    world.run(world.all_running)
    assert progress_since_start(world.job) is Progress.NONE
    own(world, "worker:0", 1, 10, 11)
    assert progress_since_start(world.job) is Progress.NONE, "worker:1 has no later snapshot yet"
    own(world, "worker:1", 1, 10, 11)
    assert progress_since_start(world.job) is Progress.STEP


def test_agents_keep_the_common_point_until_all_keep_the_next_one() -> None:
    world = running()
    own(world, "worker:0", 1, 10)
    own(world, "worker:1", 1, 10)
    assert world.orders_of("worker:0", "keep")[-1]["points"] == [[1, 1, 1]]
    for task in ("worker:0", "worker:1"):
        world.kept(task, 1)
    assert world.job.restore.kept_point is not None
    # The next common step: both points are kept until both agents have confirmed it.
    own(world, "worker:0", 2, 11, kept=[1, 2])
    own(world, "worker:1", 2, 11, kept=[1, 2])
    assert world.orders_of("worker:1", "keep")[-1]["points"] == [[1, 1, 1], [1, 1, 2]]
    world.kept("worker:0", 1, 2)
    assert world.orders_of("worker:0", "keep")[-1]["points"] == [[1, 1, 1], [1, 1, 2]]
    world.kept("worker:1", 1, 2)
    for task in ("worker:0", "worker:1"):
        line = world.orders_of(task, "keep")[-1]
        assert (line["points"], line["older"]) == ([[1, 1, 2]], True)


def test_a_point_that_an_agent_has_deleted_is_given_up_and_the_old_one_stays() -> None:
    world = running()
    own(world, "worker:0", 1, 10)
    own(world, "worker:1", 1, 10)
    for task in ("worker:0", "worker:1"):
        world.kept(task, 1)
    own(world, "worker:0", 2, 11, kept=[1, 2])
    own(world, "worker:1", 2, 11, kept=[1, 2])
    world.kept("worker:0", 1, 3, 4)
    world.kept("worker:1", 1, 2)
    held = world.job.restore.kept_point
    assert held is not None
    assert held.step == (10,)
    assert world.job.restore.next_point is None


def test_rounds_are_requested_where_files_of_several_tasks_belong_together() -> None:
    world = running(sync_interval=1.0)
    world.report("worker:0", 1, "state0.bin")
    for _ in range(10):
        world.step()
    assert world.orders_of("worker:0", "snapshot") == []
    world.report("worker:1", 1, "state1.bin")
    for _ in range(10):
        world.step()
    assert [line["round"] for line in world.orders_of("worker:1", "snapshot")] == [2]
    world.kept("worker:0", 1, answered=2)
    world.kept("worker:1", 1, answered=2)
    assert (predicted_point(world.job).rule, predicted_point(world.job).round) == ("round", 2)
    assert progress_since_start(world.job) is Progress.SNAPSHOT
    for _ in range(10):
        world.step()
    assert len(world.orders_of("worker:1", "snapshot")) == 1, "nothing is new"
    world.report("worker:0", 2, "state0.bin", round=2, kept=[1, 2])
    for _ in range(10):
        world.step()
    assert [line["round"] for line in world.orders_of("worker:0", "snapshot")] == [2, 3]
    # The same names everywhere: the chief's snapshot is the restore point.
    world = running(sync_interval=1.0)
    for task in ("worker:0", "worker:1"):
        world.report(task, 1, "checkpoint.pt")
    for _ in range(10):
        world.step()
    assert world.orders_of("worker:0", "snapshot") == []


def test_an_agent_that_comes_back_hears_again_what_to_keep() -> None:
    world = running()
    own(world, "worker:0", 1, 10)
    own(world, "worker:1", 1, 10)
    agent = world.agent("worker:0")
    world.handle({"type": "unlinked", "seat": agent.seat})
    before = len(world.orders_of("worker:0", "keep"))
    world.register(agent, {"epoch": 1, "attempt": 1, "state": "running"})
    assert len(world.orders_of("worker:0", "keep")) == before + 1


def test_a_journal_that_is_played_again_gives_the_same_choice() -> None:
    world = running()
    own(world, "worker:0", 1, 10)
    own(world, "worker:1", 1, 10)
    world.points[2] = point(10, "worker:0", "worker:1")
    world.kill("worker:0")
    world.run(world.all_running)
    again = new_job_state(world.job.config)
    for message in world.events:
        handle(again, message)
    assert again.restore.choice == world.job.restore.choice
    assert again.restore.epoch == 2
    assert {name: task.stage for name, task in again.tasks.items()} == dict.fromkeys(
        ("worker:0", "worker:1"), Stage.RUNNING
    )
