"""The restore point in the state machine: request and apply the choice, keep the common point.

Agents report their snapshots while the program runs. From the reports follow the point to which the
gang could return now (``predicted``), which snapshots agents must not delete, and when a round of
snapshots is requested. The choice itself is made from the store (``survey``). Pure: changes a
``Play`` and adds to its actions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from submarine_runtime.coordinator.machine.actions import Send, Survey
from submarine_runtime.coordinator.machine.ending import decide
from submarine_runtime.coordinator.machine.restore_point import (
    EACH,
    FIRST_ROUND,
    Choice,
    Progress,
    Question,
    Snapshot,
    choose,
    progress,
)
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    Act,
    Outcome,
    Play,
    RestoreState,
    Stage,
    Task,
)
from submarine_runtime.frameworks.ranks import EVALUATOR
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State

Message = Mapping[str, Any]

#: Sync intervals after which a new round is requested although a task has not answered.
ROUND_PATIENCE = 6


def takes_part(task: Task) -> bool:
    """Whether a task belongs to the gang's restore points: evaluators and sidecars do not."""
    return task.in_gang and task.orders.name != EVALUATOR


def ready(play: Play) -> bool:
    """Whether the restore point of this epoch is known; requests it otherwise."""
    config, restore = play.config, play.restore
    if play.epoch == 1 and not (config.restore_from or config.checkpoint_path):
        return True
    if restore.epoch == play.epoch:
        return True
    if restore.surveying != play.epoch:
        restore.surveying = play.epoch
        play.out.append(Survey(play.epoch))
    return False


def question(play: Play) -> Question:
    """What the choice for this epoch depends on."""
    config, restore = play.config, play.restore
    tasks = _participants(play)
    policy = EACH if config.restart_in_place and config.restore == "auto" else config.restore
    return Question(
        play.epoch,
        tuple(task.name for task in tasks),
        play.chief.name,
        policy,
        frozenset(task.name for task in tasks if task.kind != "tracked"),
        tuple(task.name for task in play.gang if not takes_part(task)),
        frozenset(restore.damaged),
        dict(restore.completed),
        config.restore_from,
        config.checkpoint_path,
    )


def _participants(play: Play) -> list[Task]:
    """The tasks of the gang that take part, the chief first, then by rank."""
    tasks = [task for task in play.gang if takes_part(task)]
    return sorted(tasks, key=lambda task: task is not play.chief)


def chosen(play: Play, message: Message, now: float) -> None:
    """The choice for an epoch has been made."""
    restore = play.restore
    if message.get("epoch") != play.epoch or restore.epoch == play.epoch:
        return
    choice = Choice.from_json(message["choice"])
    play.restore = RestoreState(play.epoch, choice, damaged=restore.damaged)
    if play.verdict is not None:
        return
    if not choice.empty or play.epoch > 1:
        left_out = ("parts", "changing")
        plain = {key: value for key, value in choice.to_json().items() if key not in left_out}
        parts = {task: part.snapshot.label for task, part in list(choice.parts.items())[:100]}
        play.note("restore_point", choice.sentence(), **{**plain, "parts": parts})
    for sentence in choice.warnings:
        play.note("warning", sentence, of="restore_point")
        if sentence not in play.warnings:
            play.warnings.append(sentence)
    if choice.failure:
        detail = f"--restore strict: {choice.failure} Run it with --restore auto, chief or own."
        decide(play, now, Outcome(EndReason.LAUNCH_FAILED, detail))


def failed(play: Play, message: Message, now: float) -> None:
    """The snapshots could not be read."""
    if message.get("epoch") == play.epoch and play.verdict is None:
        detail = f"The snapshots of the job could not be read: {message.get('detail')}."
        decide(play, now, Outcome(EndReason.LAUNCH_FAILED, detail[:1000]))


def order_of(play: Play, task: Task) -> dict[str, Any] | None:
    """``restore`` of the ``start`` line of a task; None: there is nothing to restore."""
    restore = play.restore
    part = None
    if restore.epoch == task.epoch:
        own = restore.choice.parts.get(task.name)
        part = own.to_json() if own is not None else None
    first = task.epoch == 1 and restore.epoch != 1
    if task.attempt > 1 or not takes_part(task):
        if first and task.attempt == 1:
            return None
        return {"own": 0 if alone(play, task) else task.epoch, "part": part}
    if first or (task.epoch == 1 and part is None):
        return None
    return {"part": part}


def alone(play: Play, task: Task) -> bool:
    """Whether a task takes no part in the gang's restore points and prunes its own snapshots."""
    return play.config.restart_in_place or not takes_part(task)


def synced(play: Play, task: Task, message: Message) -> None:
    """The last snapshot of a program that has ended is in the store."""
    if message.get("epoch") == task.epoch and message.get("attempt") == task.attempt:
        task.synced = True


def damaged(play: Play, task: Task) -> bool:
    """Exclude the snapshot that a task could not restore; False when none was chosen for it."""
    restore = play.restore
    part = restore.choice.parts.get(task.name) if restore.epoch == task.epoch else None
    if part is None or part.snapshot.key in restore.damaged:
        return False
    restore.damaged.add(part.snapshot.key)
    detail = f"{part.snapshot.label} is damaged: another restore point is chosen."
    play.note("warning", detail[:1].upper() + detail[1:], task.name)
    return True


def reported(play: Play, task: Task, message: Message, now: float) -> None:
    """An agent has taken a snapshot, answered a round or deleted snapshots."""
    if (message.get("epoch"), message.get("attempt")) != (task.epoch, task.attempt):
        return
    if task.epoch != play.epoch or alone(play, task):
        return
    restore = play.restore
    own = restore.reports.setdefault(task.name, [])
    if "number" in message:
        digests = dict(message.get("digests") or {})
        made = Snapshot.from_json(
            {
                "task": task.name,
                "epoch": task.epoch,
                "attempt": task.attempt,
                "files": list(digests),
                **{key: message[key] for key in ("number", "round", "digests", "steps")},
            }
        )
        own.append(made)
        answers = restore.completed.get(task.name, FIRST_ROUND) < restore.round
        restore.fresh = restore.fresh or not answers
    if "answered" in message:
        restore.completed[task.name] = int(message["answered"])
    kept = {int(number) for number in message.get("kept") or ()}
    restore.reports[task.name] = [
        one for one in own if one.attempt == task.attempt and one.number in kept
    ]
    only_kept = not message.keys() & {"number", "answered"}
    if only_kept and restore.wanted is not None and _numbers(task, restore.wanted) <= kept:
        restore.confirmed.add(task.name)
    _hold(play)


def predicted(play: Play) -> Choice:
    """The point to which the gang would return now; the one it started from if none is later."""
    restore = play.restore
    started = restore.choice if restore.epoch == play.epoch else Choice()
    reports = {task: own for task, own in restore.reports.items() if own}
    needed = {task for task, part in started.parts.items() if part.snapshot.task == task}
    if started.rule == "chief":
        needed = {next(iter(started.parts.values())).snapshot.task}
    elif started.rule == EACH:
        needed = set()
    needed &= {task.name for task in _participants(play)}
    if not reports or not needed <= reports.keys():
        return started
    choice = _of_reports(play)
    return started if choice.empty else choice


def _of_reports(play: Play) -> Choice:
    tasks, restore = _participants(play), play.restore
    return choose(
        restore.reports,
        play.config.restore,
        tasks=[task.name for task in tasks],
        chief=play.chief.name,
        silent=[task.name for task in tasks if task.kind != "tracked"],
        completed=restore.completed,
        changing=restore.choice.changing,
    )


def gained(play: Play) -> Progress:
    """Whether the gang has a later restore point than the one that this epoch started from."""
    restore = play.restore
    started = restore.choice if restore.epoch == play.epoch else None
    return progress(predicted(play), started)


def _numbers(task: Task, choice: Choice) -> set[int]:
    """The snapshots of a task's present attempt that are part of ``choice``."""
    snapshots = [part.snapshot for part in choice.parts.values()]
    return {
        one.number
        for one in snapshots
        if (one.task, one.epoch, one.attempt) == (task.name, task.epoch, task.attempt)
    }


def _hold(play: Play) -> None:
    """Let agents keep the newest common point; the one before goes when all keep the new one."""
    restore = play.restore
    if restore.wanted is not None:
        if not _available(play, restore.wanted):
            restore.wanted = None  # deleted before its agent heard of it
        elif restore.confirmed >= _writers(play, restore.wanted):
            restore.held, restore.wanted = restore.wanted, None
            _order_keep(play)
        else:
            return
        restore.confirmed = set()
    point = predicted(play)
    if point.empty or point is restore.choice:
        return
    if point.rule not in ("own", "round"):
        if not restore.pruned:
            restore.pruned = True
            _order_keep(play)
        return
    if restore.held is None or _keys(point) != _keys(restore.held):
        restore.wanted, restore.confirmed, restore.pruned = point, set(), True
        _order_keep(play)


def _keys(choice: Choice) -> set[tuple[Any, ...]]:
    return {part.snapshot.key for part in choice.parts.values()}


def _available(play: Play, choice: Choice) -> bool:
    there = {one.key for own in play.restore.reports.values() for one in own}
    return all(replace(one.snapshot, until=None).key in there for one in choice.parts.values())


def _writers(play: Play, choice: Choice) -> set[str]:
    """The tasks with snapshots in ``choice`` whose agents can confirm that they keep them."""
    tasks = (play.tasks[one.snapshot.task] for one in choice.parts.values())
    return {task.name for task in tasks if task.linked and task.stage in ACTIVE}


def _order_keep(play: Play) -> None:
    for task in _participants(play):
        if task.stage in (Stage.STARTING, Stage.RUNNING):
            play.out.append(Send(task.seat, keep_line(play, task)))


def keep_line(play: Play, task: Task) -> dict[str, Any]:
    """Which snapshots the agent of a task must not delete now.

    Snapshots of earlier epochs go once this epoch has a restore point that all agents keep.
    """
    restore = play.restore
    points = [one for one in (restore.held, restore.wanted) if one is not None]
    parts = {
        (one.snapshot.epoch, one.snapshot.attempt, one.snapshot.number)
        for point in points
        for one in point.parts.values()
        if one.snapshot.task == task.name
    }
    older = restore.pruned and restore.wanted is None
    return {"type": "keep", "points": sorted(list(part) for part in parts), "older": older}


def look_at_rounds(play: Play, now: float) -> None:
    """Request a round of snapshots where files of several tasks belong together."""
    restore, interval = play.restore, play.config.sync_interval
    if play.act is not Act.PLAYING or play.state is not State.RUNNING or not restore.fresh:
        return
    writers = {task for task, own in restore.reports.items() if own}
    if len(writers) < 2 or _of_reports(play).rule == "chief":
        return
    late = now >= restore.round_at + ROUND_PATIENCE * interval
    done = all(restore.completed.get(task, FIRST_ROUND) >= restore.round for task in writers)
    if now < restore.round_at + interval or not (done or late):
        return
    restore.round, restore.round_at, restore.fresh = restore.round + 1, now, False
    for task in _participants(play):
        if task.stage is Stage.RUNNING:
            play.out.append(Send(task.seat, {"type": "snapshot", "round": restore.round}))


def again(play: Play, task: Task) -> None:
    """Repeat to an agent whose link was away what it may have missed."""
    restore = play.restore
    if task.stage is Stage.RUNNING and not alone(play, task) and task.epoch == play.epoch:
        if restore.held is not None or restore.wanted is not None or restore.pruned:
            play.out.append(Send(task.seat, keep_line(play, task)))
        if restore.round > FIRST_ROUND:
            play.out.append(Send(task.seat, {"type": "snapshot", "round": restore.round}))
