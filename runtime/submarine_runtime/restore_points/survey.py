"""Find the snapshots of a job in the job directory and choose the restore point of an epoch.

The choice is published in the job directory, so that a later attempt of the application and a
``--resume`` know which snapshots belong to one training run. The rules are in
``choice``.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any, Mapping, Sequence

from submarine_runtime.frameworks import EVALUATOR
from submarine_runtime.protocol import from_json, layout, to_json
from submarine_runtime.restore_points.choice import (
    UNION,
    RestorePoint,
    RestoreQuery,
    choose_restore_point,
)
from submarine_runtime.restore_points.contents import (
    FINAL,
    FIRST_ROUND,
    PATH,
    SNAPSHOT,
    Snapshot,
    TaskRestore,
)
from submarine_runtime.restore_points.union import LAST_ROUND
from submarine_runtime.snapshots import (
    MAX_METADATA,
    StoredFiles,
    base_of,
    chosen_snapshot,
    delete_snapshots,
    files_at_path,
    final_checkpoints,
    is_metadata,
    parts_of,
    snapshots_of,
    step_of,
)
from submarine_runtime.storage import NotFoundError, Store

_POINT = re.compile(r"^point-(\d{6})\.json\Z")
THREADS = 8


def find_restore_point(store: Store, query: RestoreQuery) -> RestorePoint:
    """Return the restore point of ``query.epoch``; later calls return the same one.

    Raises
    ------
    StoreError
        If the store failed.
    """
    published = _published(store, "", query.epoch)
    if published is not None:
        return published
    previous, found = _training_run(store, "", query, query.epoch)
    if previous is None and not any(found.values()):
        if query.restore_from:
            job = query.restore_from.rstrip("/")
            previous, found = _training_run(store, job, query, None)
        if not any(found.values()) and query.checkpoint_path:
            found = _at_path(store, query.checkpoint_path, query)
    choice = _chosen_among(found, query, previous)
    independent = {
        task: TaskRestore(found[task][-1]) for task in query.independent if found.get(task)
    }
    choice = replace(choice, parts={**choice.parts, **independent})
    data = json.dumps(choice.to_json()).encode()
    if not store.publish_exclusive(layout.restore_point(query.epoch), data):
        return _published(store, "", query.epoch) or choice
    return choice


def order_of_single_task(
    store: Store, task: str, restore_from: str | None, checkpoint_path: str | None
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return what a task without a coordinator restores from another job of several tasks.

    Returns
    -------
    order, warnings
        The ``order`` of ``restore_chosen``; None: the task restores its own or the chief's files.

    Raises
    ------
    StoreError
        If the store failed.
    """
    if snapshots_of(store, "", task, layout.CHECKPOINTS):
        return None, ()
    query = RestoreQuery(
        1, (task,), task, restore_from=restore_from, checkpoint_path=checkpoint_path
    )
    choice = find_restore_point(store, query)
    if choice.rule == "beginning":
        return {"part": None}, choice.warnings
    if choice.rule != UNION:
        return None, ()
    return {"shared": layout.restore_point(1), "owned": [task, *choice.shared]}, choice.warnings


def _chosen_among(
    found: Mapping[str, Sequence[Snapshot]], query: RestoreQuery, previous: RestorePoint | None
) -> RestorePoint:
    return choose_restore_point(
        found,
        query.policy,
        tasks=query.tasks,
        others=[task for task in found if task not in {*query.tasks, *query.independent}],
        chief=query.chief,
        optional=query.optional,
        completed=query.completed,
        changing=previous.changing if previous is not None else None,
    )


def _published(store: Store, job: str, epoch: int) -> RestorePoint | None:
    name = layout.restore_point(epoch)
    data = store.read(f"{job}/{name}" if job else name)
    with suppress(ValueError):  # Written by another version: choose again.
        return None if data is None else from_json(RestorePoint, json.loads(data))
    return None


def _training_run(
    store: Store, job: str, query: RestoreQuery, before: int | None
) -> tuple[RestorePoint | None, dict[str, list[Snapshot]]]:
    """Return the newest restore point of a job, and the snapshots after it, the oldest first.

    Snapshots of earlier epochs belong to the same training run only if they were restored.

    Parameters
    ----------
    before
        The epoch for which a restore point is chosen; None: the job has ended, and its final
        checkpoints are the newest snapshots.
    """
    place = f"{job}/{layout.SNAPSHOTS}" if job else layout.SNAPSHOTS
    names = {entry.name for entry in store.entries(place)}
    epochs = [int(match.group(1)) for match in map(_POINT.match, names) if match is not None]
    started, previous = None, None
    for epoch in sorted((e for e in epochs if before is None or e < before), reverse=True):
        choice = _published(store, job, epoch)
        parts = choice.parts.values() if choice is not None else ()
        # An epoch with a damaged restore point has not run.
        if choice is not None and not any(p.snapshot.key in query.damaged for p in parts):
            started, previous = epoch, choice
            break
    record = _record(store, job) if before is None else {}

    def find(task: str) -> list[Snapshot]:
        return _of_task(store, job, task, names, started or 1, previous, record, query)

    tasks = [*query.tasks, *query.independent]
    written = sorted(filter(None, map(_task_of, names)))
    if record:
        directories = (str(one.get("task")).replace(":", "-") for one in record.get("tasks") or ())
        written += sorted(filter(None, map(_task_of, directories)))
    shared = previous.shared if previous is not None else ()
    for task in dict.fromkeys((*shared, *written)):
        if task not in tasks and layout.split_task(task)[0] != EVALUATOR:
            tasks.append(task)
    # cost: logging and 0.8 MB of memory, which a job without a restart does not need.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(THREADS, len(tasks)) or 1) as pool:
        return previous, dict(zip(tasks, pool.map(find, tasks)))


def _task_of(directory: str) -> str:
    """Return the task of a directory of snapshots, ``worker:1`` of ``worker-1``; empty: none."""
    task = ":".join(directory.rsplit("-", 1))
    with suppress(ValueError):
        layout.split_task(task)
        return task
    return ""


def _record(store: Store, job: str) -> dict[str, Any]:
    with suppress(ValueError):
        record = json.loads(store.read(f"{job}/{layout.RECORD}") or b"{}")
        return record if isinstance(record, dict) else {}
    return {}


def _of_task(
    store: Store,
    job: str,
    task: str,
    names: set[str],
    since: int,
    previous: RestorePoint | None,
    record: Mapping[str, Any],
    query: RestoreQuery,
) -> list[Snapshot]:
    found: list[Snapshot] = []
    role, index = layout.split_task(task)
    if f"{role}-{index}" in names:
        for entry in snapshots_of(store, job, task, layout.CHECKPOINTS, None, since):
            manifest, attempt = entry.manifest, entry.attempt
            if manifest is not None and attempt is not None:
                snapshot = Snapshot(
                    task,
                    job=job,
                    epoch=attempt[0],
                    attempt=attempt[1],
                    number=manifest.number,
                    round=manifest.round,
                    answered=manifest.answered,
                    files=tuple(file.path for file in manifest.files),
                    digests={file.path: file.crc for file in manifest.files},
                    steps={name: tuple(step) for name, step in manifest.steps.items()},
                    needs={name: tuple(parts) for name, parts in manifest.needs.items()},
                    world=manifest.world,
                )
                found.insert(0, snapshot)
    part = previous.parts.get(task) if previous is not None else None
    if part is not None and (found or part.snapshot.task == task):
        chosen = part.snapshot if part.snapshot.job or not job else replace(part.snapshot, job=job)
        with suppress(NotFoundError):
            files = chosen_snapshot(store, to_json(chosen))
            snapshot = _with_files(store, chosen, files)
            found.insert(0, replace(snapshot, round=FIRST_ROUND))
    if record:
        for final in final_checkpoints(store, job, task):
            snapshot = _with_files(store, Snapshot(task, FINAL, job), final)
            succeeded = record.get("state") == "SUCCEEDED"
            found.append(replace(snapshot, round=LAST_ROUND if succeeded else -1))
    return [snapshot for snapshot in found if snapshot.key not in query.damaged]


def _with_files(store: Store, snapshot: Snapshot, found: StoredFiles) -> Snapshot:
    """Return ``snapshot`` with file names and steps; reads small metadata files for the steps."""
    names = tuple(piece.path for piece in found.files)
    digests = {piece.path: piece.crc for piece in found.files if piece.crc is not None}
    steps, needs = {}, {}
    for piece in found.files:
        if is_metadata(piece.path) and piece.size <= MAX_METADATA:
            text = b"".join(store.stream(piece.source, piece.offset, piece.size))
            step, parts = tuple(step_of(piece.path, text)), tuple(parts_of(piece.path, text))
            if step:
                steps[piece.path] = step
            if parts:
                needs[piece.path] = parts
    return replace(snapshot, files=names, digests=digests, steps=steps, needs=needs)


def _at_path(store: Store, path: str, query: RestoreQuery) -> dict[str, list[Snapshot]]:
    found: dict[str, list[Snapshot]] = {}
    tasks = [*query.tasks, *query.independent]
    others = store.entries(base_of(path, tasks[0], chief=False).rpartition("/")[0])
    tasks += sorted({_task_of(entry.name) for entry in others}.difference(("", *tasks)))
    for task in tasks:
        base = base_of(path, task, task == query.chief)
        for files in files_at_path(store, base):
            found[task] = [_with_files(store, Snapshot(task, PATH, base), files)]
    return found


def delete_superfluous_snapshots(
    store: Store, job: str, query: RestoreQuery, unsaved: list[str]
) -> None:
    """Delete the snapshots and pieces of a job that has its record.

    Parameters
    ----------
    job
        Path of the job directory.
    unsaved
        Tasks without outputs in the job directory: their newest attempt is kept.

    Raises
    ------
    StoreError
        If the store failed.
    """
    previous, found = _training_run(store, job, query, None)
    choice = RestorePoint()
    if unsaved or not _deleted_its_checkpoints(_record(store, job), found, query.chief):
        choice = _chosen_among(found, query, previous)
    kept = {
        (layout.task_directory(part.snapshot.task), part.snapshot.epoch, part.snapshot.attempt)
        for part in choice.parts.values()
        if part.snapshot.origin == SNAPSHOT
    }
    lost = {layout.task_directory(task) for task in unsaved}
    if not kept and not lost:
        delete_snapshots(store)
        return
    for directory in (layout.SNAPSHOTS, layout.GROWING):
        for entry in store.entries(directory):
            if not entry.is_directory:
                continue
            if entry.name not in lost and (
                directory == layout.GROWING or all(name != entry.name for name, _, _ in kept)
            ):
                store.delete(f"{directory}/{entry.name}", recursive=True)
                continue
            attempts = []
            for attempt in store.entries(f"{directory}/{entry.name}"):
                numbers = layout.parse_attempt(attempt.name)
                if numbers is not None:
                    attempts.append((numbers, f"{directory}/{entry.name}/{attempt.name}"))
            # The pieces of TensorBoard files of all attempts make one file.
            spared = len(attempts) if directory == layout.GROWING else 1
            spared = spared if entry.name in lost else 0
            for numbers, place in sorted(attempts)[: len(attempts) - spared]:
                if directory == layout.GROWING or (entry.name, *numbers) not in kept:
                    store.delete(place, recursive=True)


def _deleted_its_checkpoints(
    record: Mapping[str, Any], found: Mapping[str, Sequence[Snapshot]], chief: str
) -> bool:
    """Whether a job succeeded and deleted its checkpoints, as Keras' BackupAndRestore does."""
    writers = [task for task, several in found.items() if several]
    source = chief if chief in writers else next(iter(writers), "")
    missing = any(layout.CHECKPOINTS in str(sentence) for sentence in record.get("missing") or ())
    left = any(snapshot.origin == FINAL for snapshot in found.get(source, ()))
    return record.get("state") == "SUCCEEDED" and not missing and not left
