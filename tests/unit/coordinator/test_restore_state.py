"""Restore points in the state machine: choice, reports, common point, rounds, replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from submarine_runtime.coordinator.machine import (
    ChooseRestorePoint,
    SendMessage,
    Stage,
    handle,
    new_job_state,
)
from submarine_runtime.coordinator.machine.restore_state import (
    exclude_damaged,
    predicted_point,
    progress_since_start,
    restore_order,
)
from submarine_runtime.protocol import EndReason
from submarine_runtime.restore_points import Progress, RestorePoint, Snapshot, TaskRestore
from tests.unit.coordinator.simulation import Simulation, orders, role


class SnapshotMessages(Simulation):
    """A simulation that stores the messages about snapshots."""

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


def running(*roles: Any, **config: Any) -> SnapshotMessages:
    sim = SnapshotMessages(*(roles or (role("worker", 2),)), **config)
    sim.run(sim.all_running)
    return sim


def test_the_first_start_restores_nothing() -> None:
    sim = running()
    assert [start.restore for start in sim.starts] == [None, None]
    assert not any(isinstance(action, ChooseRestorePoint) for action in sim.job.actions)
    assert sim.job.restore.surveying == 0


@pytest.mark.parametrize("where", ["restore_from", "checkpoint_path"])
def test_the_first_start_from_a_job_or_a_path_has_a_restore_point(where: str) -> None:
    sim = SnapshotMessages(role("worker", 2), **{where: "/old"})
    sim.points[1] = point(7, "worker:0", "worker:1")
    sim.run(sim.all_running)
    for start in sim.starts:
        assert start.restore is not None
        assert start.restore["part"]["snapshot"]["number"] == 7
    note = next(note for note in sim.notes if note.kind == "restore_point")
    assert (note.data["rule"], note.data["step"]) == ("own", [7])


def test_programs_start_after_the_choice_of_the_restore_point() -> None:
    sim = running(role("worker", 2), role("evaluator"))
    sim.points[2] = point(7, "worker:0", "worker:1")
    before = len(sim.starts)
    sim.answers = False
    sim.kill("worker:1")
    sim.run(lambda: bool(sim.surveys))
    sim.step(20.0)
    assert len(sim.starts) == before
    assert sim.surveys == [2]
    sim.answers = True
    sim.run(sim.all_running)
    parts = {}
    for start in sim.starts[before:]:
        assert start.restore is not None
        part = start.restore["part"]
        parts[start.seat.partition(".")[0]] = part and part["snapshot"]["task"]
    assert parts == {"worker-0": "worker:0", "worker-1": "worker:1", "evaluator-0": None}
    sentence = [note.detail for note in sim.notes if note.kind == "restore_point"]
    assert sentence == ["Each task restores its own files at step 7 (rule own)."]


def test_warnings_of_the_choice_are_events_and_strict_ends_the_job() -> None:
    sim = running(restore="strict")
    sim.points[2] = RestorePoint("beginning", warnings=("Nothing is common.",), failure="Nothing.")
    sim.kill("worker:1")
    sim.run(lambda: sim.ended)
    assert sim.reason() is EndReason.LAUNCH_FAILED
    assert "--restore strict: Nothing." in sim.job.verdict.outcome.detail  # type: ignore[union-attr]
    assert "Nothing is common." in [note.detail for note in sim.notes if note.kind == "warning"]


def test_a_failed_survey_ends_the_job() -> None:
    sim = running()
    sim.answers = False
    sim.kill("worker:1")
    sim.run(lambda: bool(sim.surveys))
    sim.handle({"type": "survey_failed", "epoch": 2, "detail": "HDFS does not answer"})
    sim.run(lambda: sim.ended)
    assert "HDFS does not answer" in sim.job.verdict.outcome.detail  # type: ignore[union-attr]


def test_the_gang_waits_for_the_last_snapshots_of_programs_that_it_stopped() -> None:
    sim = running()
    agent = sim.agent("worker:0")
    sim.kill("worker:1")
    agent.outbox = [line for line in agent.outbox if line["type"] != "synced"]
    for _ in range(20):
        sim.step()
    assert sim.surveys == []
    assert sim.job.restore.surveying == 0
    sim.say(agent, type="synced", epoch=1, attempt=1)
    sim.run(sim.all_running)
    assert sim.job.epoch == 2


def test_a_damaged_snapshot_is_excluded_and_another_point_is_chosen() -> None:
    sim = running()
    sim.points[2] = point(7, "worker:0", "worker:1")
    sim.points[3] = point(6, "worker:0", "worker:1")
    sim.kill("worker:1")
    sim.run(sim.all_running)
    agent = sim.agent("worker:1")
    sim.finish(agent, "launch_failed", unrestored=True, retry="no")
    sim.run(lambda: sim.job.epoch == 3 and sim.all_running())
    assert [key[2:] for key in sim.job.restore.damaged] == [("worker:1", 1, 1, 7)]
    assert sim.job.restarts == 1


def test_a_task_that_restarts_alone_keeps_its_own_newest_snapshot() -> None:
    sim = running(restart_in_place=True)
    sim.kill("worker:1")
    sim.run(sim.all_running)
    assert sim.starts[-1].restore == {"own": 0, "part": None}
    assert sim.starts[-1].alone


def own(sim: SnapshotMessages, task: str, number: int, *steps: int, **more: Any) -> None:
    sim.report(task, number, *[f"rank{task[-1]}_step_{step}" for step in steps], **more)


def test_reports_predict_the_restore_point() -> None:
    sim = running()
    assert progress_since_start(sim.job) is Progress.NONE
    own(sim, "worker:0", 1, 10)
    own(sim, "worker:1", 1, 10)
    assert (predicted_point(sim.job).rule, predicted_point(sim.job).step) == ("own", (10,))
    assert progress_since_start(sim.job) is Progress.STEP
    sim.points[2] = predicted_point(sim.job)
    sim.kill("worker:1")
    sim.run(sim.all_running)
    assert progress_since_start(sim.job) is Progress.NONE
    own(sim, "worker:0", 1, 10, 11)
    assert progress_since_start(sim.job) is Progress.NONE, "worker:1 has no later snapshot yet"
    own(sim, "worker:1", 1, 10, 11)
    assert progress_since_start(sim.job) is Progress.STEP


def test_agents_keep_the_common_point_until_all_keep_the_next_one() -> None:
    sim = running()
    own(sim, "worker:0", 1, 10)
    own(sim, "worker:1", 1, 10)
    assert sim.orders_of("worker:0", "keep")[-1]["points"] == [[1, 1, 1]]
    for task in ("worker:0", "worker:1"):
        sim.kept(task, 1)
    assert sim.job.restore.kept_point is not None
    # The next common step: both points are kept until both agents have confirmed it.
    own(sim, "worker:0", 2, 11, kept=[1, 2])
    own(sim, "worker:1", 2, 11, kept=[1, 2])
    assert sim.orders_of("worker:1", "keep")[-1]["points"] == [[1, 1, 1], [1, 1, 2]]
    sim.kept("worker:0", 1, 2)
    assert sim.orders_of("worker:0", "keep")[-1]["points"] == [[1, 1, 1], [1, 1, 2]]
    sim.kept("worker:1", 1, 2)
    for task in ("worker:0", "worker:1"):
        line = sim.orders_of(task, "keep")[-1]
        assert (line["points"], line["older"]) == ([[1, 1, 2]], True)


def test_a_restore_point_that_an_agent_has_deleted_is_dropped() -> None:
    sim = running()
    own(sim, "worker:0", 1, 10)
    own(sim, "worker:1", 1, 10)
    for task in ("worker:0", "worker:1"):
        sim.kept(task, 1)
    own(sim, "worker:0", 2, 11, kept=[1, 2])
    own(sim, "worker:1", 2, 11, kept=[1, 2])
    sim.kept("worker:0", 1, 3, 4)
    sim.kept("worker:1", 1, 2)
    held = sim.job.restore.kept_point
    assert held is not None
    assert held.step == (10,)
    assert sim.job.restore.next_point is None


def test_rounds_are_requested_where_files_of_several_tasks_belong_together() -> None:
    sim = running(sync_interval=1.0)
    sim.report("worker:0", 1, "state0.bin")
    for _ in range(10):
        sim.step()
    assert sim.orders_of("worker:0", "snapshot") == []
    sim.report("worker:1", 1, "state1.bin")
    for _ in range(10):
        sim.step()
    assert [line["round"] for line in sim.orders_of("worker:1", "snapshot")] == [2]
    sim.kept("worker:0", 1, answered=2)
    sim.kept("worker:1", 1, answered=2)
    assert (predicted_point(sim.job).rule, predicted_point(sim.job).round) == ("round", 2)
    assert progress_since_start(sim.job) is Progress.SNAPSHOT
    for _ in range(10):
        sim.step()
    assert len(sim.orders_of("worker:1", "snapshot")) == 1, "nothing is new"
    sim.report("worker:0", 2, "state0.bin", round=2, kept=[1, 2])
    for _ in range(10):
        sim.step()
    assert [line["round"] for line in sim.orders_of("worker:0", "snapshot")] == [2, 3]
    # The same names everywhere: the chief's snapshot is the restore point.
    sim = running(sync_interval=1.0)
    for task in ("worker:0", "worker:1"):
        sim.report(task, 1, "checkpoint.pt")
    for _ in range(10):
        sim.step()
    assert sim.orders_of("worker:0", "snapshot") == []


def test_a_reconnected_agent_receives_the_orders_again() -> None:
    sim = running()
    own(sim, "worker:0", 1, 10)
    own(sim, "worker:1", 1, 10)
    agent = sim.agent("worker:0")
    sim.handle({"type": "unlinked", "seat": agent.seat})
    before = len(sim.orders_of("worker:0", "keep"))
    sim.register(agent, {"epoch": 1, "attempt": 1, "state": "running"})
    assert len(sim.orders_of("worker:0", "keep")) == before + 1


def test_a_replayed_journal_gives_the_same_choice() -> None:
    sim = running()
    own(sim, "worker:0", 1, 10)
    own(sim, "worker:1", 1, 10)
    sim.points[2] = point(10, "worker:0", "worker:1")
    sim.kill("worker:0")
    sim.run(sim.all_running)
    again = new_job_state(sim.job.config)
    for message in sim.events:
        handle(again, message)
    assert again.restore.choice == sim.job.restore.choice
    assert again.restore.epoch == 2
    assert {name: task.stage for name, task in again.tasks.items()} == dict.fromkeys(
        ("worker:0", "worker:1"), Stage.RUNNING
    )


def part(sim: SnapshotMessages, task: str, number: int, step: int, **more: Any) -> None:
    """A snapshot with one task's part of a sharded checkpoint; worker:0 writes the marker."""
    names = [f"step_{step}/__{task[-1]}_0.distcp"]
    if task == "worker:0":
        names.append(f"step_{step}/.metadata")
        more["needs"] = {names[1]: ["__0_0.distcp", "__1_0.distcp"]}
    sim.report(task, number, *names, world=2, **more)


def test_the_parts_of_a_checkpoint_are_kept_until_the_next_one_is_complete() -> None:
    sim = running()
    part(sim, "worker:0", 1, 10)
    assert predicted_point(sim.job).empty, "a part is missing"
    part(sim, "worker:1", 1, 10)
    assert (predicted_point(sim.job).rule, predicted_point(sim.job).step) == ("union", (10,))
    assert progress_since_start(sim.job) is Progress.STEP
    for task in ("worker:0", "worker:1"):
        assert sim.orders_of(task, "keep")[-1]["points"] == [[1, 1, 1]]
        sim.kept(task, 1)
    part(sim, "worker:0", 2, 11, kept=[1, 2])
    part(sim, "worker:0", 3, 12, kept=[1, 2, 3])
    assert sim.job.restore.kept_point is not None
    assert sim.job.restore.kept_point.step == (10,)


def test_each_task_is_told_to_restore_the_parts_of_all_tasks() -> None:
    sim = running()
    part(sim, "worker:0", 1, 10)
    part(sim, "worker:1", 1, 10)
    choice = predicted_point(sim.job)
    lost = replace(choice.parts["worker:1"].snapshot, task="worker:2")
    sim.points[2] = replace(
        choice,
        parts={**choice.parts, "worker:2": TaskRestore(lost)},
        shared=(*choice.shared, "worker:2"),
    )
    sim.kill("worker:1")
    sim.run(sim.all_running)
    orders = {task: restore_order(sim.job, sim.job.tasks[task]) for task in sim.job.tasks}
    assert [order and order["shared"] for order in orders.values()] == [
        "snapshots/point-000002.json"
    ] * 2
    # The files of a task that is not in the gang any more belong to the chief.
    assert {task: order and order["owned"] for task, order in orders.items()} == {
        "worker:0": ["worker:0", "worker:2"],
        "worker:1": ["worker:1"],
    }


def test_a_damaged_part_of_another_task_is_excluded() -> None:
    sim = running()
    part(sim, "worker:0", 1, 10)
    part(sim, "worker:1", 1, 10)
    sim.points[2] = predicted_point(sim.job)
    sim.kill("worker:1")
    sim.run(sim.all_running)
    task = sim.job.tasks["worker:0"]
    assert exclude_damaged(sim.job, task, {"damaged": "worker:1"})
    assert {key[2] for key in sim.job.restore.damaged} == {"worker:1"}


def test_files_without_a_step_are_checked_in_another_round() -> None:
    """They belong together if they have not changed since they were reported."""
    sim = running(sync_interval=1.0)
    marker = {"needs": {"model/.metadata": ["__0_0.distcp", "__1_0.distcp"]}}

    def report(number: int, asked: int, **more: Any) -> None:
        names = ("model/__0_0.distcp", "model/.metadata")
        sim.report("worker:0", number, *names, round=asked, **more, **marker)
        sim.report("worker:1", number, "model/__1_0.distcp", round=asked, **more)

    def wait() -> list[int]:
        for _ in range(12):
            sim.step()
        return [line["round"] for line in sim.orders_of("worker:0", "snapshot")]

    report(1, 0)
    assert wait() == [2]
    assert predicted_point(sim.job).empty
    # The files have changed in the meantime.
    report(2, 2, kept=[1, 2])
    for task in ("worker:0", "worker:1"):
        sim.kept(task, 1, 2, answered=2)
    assert wait() == [2, 3]
    for task in ("worker:0", "worker:1"):
        sim.kept(task, 1, 2, answered=3)
    assert (predicted_point(sim.job).rule, predicted_point(sim.job).round) == ("union", 3)
    assert wait() == [2, 3]
