"""Restore points in the state machine: request and apply the choice, keep the common point.

Agents report their snapshots while the program runs. The reports determine the point to which the
gang could return now (``predicted_point``), which snapshots agents must not delete, and when a
round of snapshots is requested. The choice is made from the job directory
(``restore_points.survey``). The functions change a ``JobState`` and add to its actions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from submarine_runtime.coordinator.machine.actions import ChooseRestorePoint, SendMessage
from submarine_runtime.coordinator.machine.ending import end_job
from submarine_runtime.coordinator.machine.state import (
    ACTIVE,
    Event,
    JobPhase,
    JobState,
    Outcome,
    RestoreState,
    Stage,
    Task,
)
from submarine_runtime.frameworks import EVALUATOR
from submarine_runtime.protocol import EndReason, State, from_json, layout, to_json
from submarine_runtime.restore_points import (
    EACH,
    FIRST_ROUND,
    UNION,
    Progress,
    RestorePoint,
    RestoreQuery,
    Snapshot,
    choose_restore_point,
    progress,
)
from submarine_runtime.translation import _

#: Sync intervals after which a new round is requested although a task has not answered.
ROUND_PATIENCE = 6


def takes_part(task: Task) -> bool:
    """Whether a task belongs to the gang's restore points: evaluators and sidecars do not."""
    return task.in_gang and task.role.name != EVALUATOR


def restore_point_known(job: JobState) -> bool:
    """Return whether the restore point of this epoch is known; request it otherwise."""
    config, restore = job.config, job.restore
    if job.epoch == 1 and not (config.restore_from or config.checkpoint_path):
        return True
    if restore.epoch == job.epoch:
        return True
    if restore.surveying != job.epoch:
        restore.surveying = job.epoch
        job.actions.append(ChooseRestorePoint(job.epoch))
    return False


def restore_query(job: JobState) -> RestoreQuery:
    """Return what the choice for this epoch depends on."""
    config, restore = job.config, job.restore
    tasks = _participants(job)
    policy = EACH if config.restart_in_place and config.restore == "auto" else config.restore
    return RestoreQuery(
        job.epoch,
        tuple(task.name for task in tasks),
        job.chief.name,
        policy,
        frozenset(task.name for task in tasks if task.kind != "tracked"),
        tuple(task.name for task in job.gang if not takes_part(task)),
        frozenset(restore.damaged),
        dict(restore.completed),
        config.restore_from,
        config.checkpoint_path,
    )


def _participants(job: JobState) -> list[Task]:
    """Return the tasks of the gang that take part, the chief first, then by rank."""
    tasks = [task for task in job.gang if takes_part(task)]
    return sorted(tasks, key=lambda task: task is not job.chief)


def restore_point_chosen(job: JobState, event: Event, now: float) -> None:
    """Handle ``restore_point``: the restore point of an epoch was chosen."""
    restore = job.restore
    if event.get("epoch") != job.epoch or restore.epoch == job.epoch:
        return
    choice = from_json(RestorePoint, event["choice"])
    job.restore = RestoreState(job.epoch, choice, damaged=restore.damaged)
    if job.verdict is not None:
        return
    if not choice.empty or job.epoch > 1:
        left_out = ("parts", "changing")
        plain = {key: value for key, value in choice.to_json().items() if key not in left_out}
        parts = {task: part.snapshot.label for task, part in list(choice.parts.items())[:100]}
        job.add_event("restore_point", choice.sentence(), **{**plain, "parts": parts})
    for sentence in choice.warnings:
        job.add_event("warning", sentence, of="restore_point")
        if sentence not in job.warnings:
            job.warnings.append(sentence)
    if choice.failure:
        detail = _("--restore strict: {failure} Run it with --restore auto, chief or own.").format(
            failure=choice.failure
        )
        end_job(job, now, Outcome(EndReason.LAUNCH_FAILED, detail))


def survey_failed(job: JobState, event: Event, now: float) -> None:
    """Handle ``survey_failed``: the snapshots could not be read."""
    if event.get("epoch") == job.epoch and job.verdict is None:
        detail = _("The snapshots of the job could not be read: {detail}.").format(
            detail=event.get("detail")
        )
        end_job(job, now, Outcome(EndReason.LAUNCH_FAILED, detail[:1000]))


def restore_order(job: JobState, task: Task) -> dict[str, Any] | None:
    """Return ``restore`` of the ``start`` line of a task; None: there is nothing to restore."""
    restore = job.restore
    part = None
    if restore.epoch == task.epoch:
        own_part = restore.choice.parts.get(task.name)
        part = to_json(own_part.without_files()) if own_part is not None else None
    first = task.epoch == 1 and restore.epoch != 1
    if task.attempt > 1 or not takes_part(task):
        if first and task.attempt == 1:
            return None
        return {"own": 0 if restores_alone(job, task) else task.epoch, "part": part}
    if restore.epoch == task.epoch and restore.choice.rule == UNION:
        tasks = {one.name for one in _participants(job)}
        owned = [task.name]
        if task is job.chief or job.chief.name not in tasks:
            owned += [name for name in restore.choice.shared if name not in tasks]
        return {"part": part, "shared": layout.restore_point(task.epoch), "owned": owned}
    if first or (task.epoch == 1 and part is None):
        return None
    return {"part": part}


def restores_alone(job: JobState, task: Task) -> bool:
    """Whether a task takes no part in the gang's restore points and prunes its own snapshots."""
    return job.config.restart_in_place or not takes_part(task)


def last_snapshot_stored(job: JobState, task: Task, event: Event) -> None:
    """Handle ``synced``: the last snapshot of an ended program is in the job directory."""
    if event.get("epoch") == task.epoch and event.get("attempt") == task.attempt:
        task.synced = True


def exclude_damaged(job: JobState, task: Task, event: Event) -> bool:
    """Exclude a snapshot that a task could not restore; False if none was chosen for it."""
    restore = job.restore
    name = event.get("damaged") or task.name
    part = restore.choice.parts.get(name) if restore.epoch == task.epoch else None
    if part is None or part.snapshot.key in restore.damaged:
        return False
    restore.damaged.add(part.snapshot.key)
    detail = _("{label} is damaged: another restore point is chosen.").format(
        label=part.snapshot.label
    )
    job.add_event("warning", detail[:1].upper() + detail[1:], task.name)
    return True


def snapshot_reported(job: JobState, task: Task, event: Event, now: float) -> None:
    """Handle ``snapshot``: an agent has taken one, answered a round or deleted snapshots."""
    if (event.get("epoch"), event.get("attempt")) != (task.epoch, task.attempt):
        return
    if task.epoch != job.epoch or restores_alone(job, task):
        return
    restore = job.restore
    snapshots = restore.reports.setdefault(task.name, [])
    if "number" in event:
        digests = dict(event.get("digests") or {})
        snapshot = from_json(
            Snapshot,
            {
                "task": task.name,
                "epoch": task.epoch,
                "attempt": task.attempt,
                "files": list(digests),
                **{key: event[key] for key in ("number", "round", "digests", "steps")},
                **{key: event[key] for key in ("needs", "world") if key in event},
            },
        )
        snapshots.append(snapshot)
        answers = restore.completed.get(task.name, FIRST_ROUND) < restore.round
        restore.new_snapshots = restore.new_snapshots or not answers
    if "answered" in event:
        restore.completed[task.name] = answered = int(event["answered"])
        if snapshots:
            snapshots[-1] = replace(snapshots[-1], answered=answered)
            # Files without a step belong together if a later round finds them unchanged.
            rules = (UNION, "beginning") if snapshots[-1].round == answered else ()
            again = bool(rules) and _of_reports(job).rule in rules
            restore.new_snapshots = restore.new_snapshots or again
    kept = {int(number) for number in event.get("kept") or ()}
    restore.reports[task.name] = [
        snapshot
        for snapshot in snapshots
        if snapshot.attempt == task.attempt and snapshot.number in kept
    ]
    only_kept = not event.keys() & {"number", "answered"}
    if only_kept and restore.next_point is not None and _numbers(task, restore.next_point) <= kept:
        restore.confirmed.add(task.name)
    _update_kept_point(job)


def predicted_point(job: JobState) -> RestorePoint:
    """Return the restore point of a restart now; the last one if no later one exists."""
    restore = job.restore
    started = restore.choice if restore.epoch == job.epoch else RestorePoint()
    reports = {task: snapshots for task, snapshots in restore.reports.items() if snapshots}
    needed = {task for task, part in started.parts.items() if part.snapshot.task == task}
    if started.rule == "chief":
        needed = {next(iter(started.parts.values())).snapshot.task}
    elif started.rule == EACH:
        needed = set()
    needed &= {task.name for task in _participants(job)}
    if not reports or not needed <= reports.keys():
        return started
    choice = _of_reports(job)
    return started if choice.empty else choice


def _of_reports(job: JobState) -> RestorePoint:
    tasks, restore = _participants(job), job.restore
    return choose_restore_point(
        restore.reports,
        job.config.restore,
        tasks=[task.name for task in tasks],
        chief=job.chief.name,
        optional=[task.name for task in tasks if task.kind != "tracked"],
        completed=restore.completed,
        changing=restore.choice.changing,
    )


def progress_since_start(job: JobState) -> Progress:
    """Compare the restore point of a restart now with the one that this epoch started from."""
    restore = job.restore
    started = restore.choice if restore.epoch == job.epoch else None
    return progress(predicted_point(job), started)


def _numbers(task: Task, choice: RestorePoint) -> set[int]:
    """Return the snapshots of a task's current attempt that are part of ``choice``."""
    snapshots = [part.snapshot for part in choice.parts.values()]
    return {
        snapshot.number
        for snapshot in snapshots
        if (snapshot.task, snapshot.epoch, snapshot.attempt)
        == (task.name, task.epoch, task.attempt)
    }


def _update_kept_point(job: JobState) -> None:
    """Keep the newest common point; release the previous one when all agents keep the new one."""
    restore = job.restore
    if restore.next_point is not None:
        if not _available(job, restore.next_point):
            restore.next_point = None  # Deleted before the order reached its agent.
        elif restore.confirmed >= _writers(job, restore.next_point):
            restore.kept_point, restore.next_point = restore.next_point, None
            _order_keep(job)
        else:
            return
        restore.confirmed = set()
    point = predicted_point(job)
    if point.empty or point is restore.choice:
        return
    if point.rule not in ("own", "round", UNION):
        if not restore.pruned:
            restore.pruned = True
            _order_keep(job)
        return
    if restore.kept_point is None or _keys(point) != _keys(restore.kept_point):
        restore.next_point, restore.confirmed, restore.pruned = point, set(), True
        _order_keep(job)


def _keys(choice: RestorePoint) -> set[tuple[Any, ...]]:
    return {part.snapshot.key for part in choice.parts.values()}


def _available(job: JobState, choice: RestorePoint) -> bool:
    available = {
        snapshot.key for snapshots in job.restore.reports.values() for snapshot in snapshots
    }
    return all(
        replace(part.snapshot, until=None).key in available for part in choice.parts.values()
    )


def _writers(job: JobState, choice: RestorePoint) -> set[str]:
    """Return the tasks with snapshots in ``choice`` and agents that can confirm to keep them."""
    tasks = (job.tasks[part.snapshot.task] for part in choice.parts.values())
    return {task.name for task in tasks if task.linked and task.stage in ACTIVE}


def _order_keep(job: JobState) -> None:
    for task in _participants(job):
        if task.stage in (Stage.STARTING, Stage.RUNNING):
            job.actions.append(SendMessage(task.seat, keep_line(job, task)))


def keep_line(job: JobState, task: Task) -> dict[str, Any]:
    """Return the order that names the snapshots which an agent must not delete.

    Snapshots of earlier epochs are deleted when all agents keep a restore point of this epoch.
    """
    restore = job.restore
    points = [point for point in (restore.kept_point, restore.next_point) if point is not None]
    parts = {
        (part.snapshot.epoch, part.snapshot.attempt, part.snapshot.number)
        for point in points
        for part in point.parts.values()
        if part.snapshot.task == task.name
    }
    older = restore.pruned and restore.next_point is None
    return {"type": "keep", "points": sorted(list(part) for part in parts), "older": older}


def request_round_if_due(job: JobState, now: float) -> None:
    """Request a round of snapshots if files of several tasks belong together and it is time."""
    restore, interval = job.restore, job.config.sync_interval
    if (
        job.phase is not JobPhase.RUNNING
        or job.state is not State.RUNNING
        or not restore.new_snapshots
    ):
        return
    writers = {task for task, snapshots in restore.reports.items() if snapshots}
    if len(writers) < 2 or _of_reports(job).rule == "chief":
        return
    late = now >= restore.round_at + ROUND_PATIENCE * interval
    done = all(restore.completed.get(task, FIRST_ROUND) >= restore.round for task in writers)
    if now < restore.round_at + interval or not (done or late):
        return
    restore.round, restore.round_at, restore.new_snapshots = restore.round + 1, now, False
    for task in _participants(job):
        if task.stage is Stage.RUNNING:
            job.actions.append(SendMessage(task.seat, {"type": "snapshot", "round": restore.round}))


def repeat_requests(job: JobState, task: Task) -> None:
    """Repeat the orders that an agent may have missed while its link was closed."""
    restore = job.restore
    if task.stage is Stage.RUNNING and not restores_alone(job, task) and task.epoch == job.epoch:
        if restore.kept_point is not None or restore.next_point is not None or restore.pruned:
            job.actions.append(SendMessage(task.seat, keep_line(job, task)))
        if restore.round > FIRST_ROUND:
            job.actions.append(SendMessage(task.seat, {"type": "snapshot", "round": restore.round}))
