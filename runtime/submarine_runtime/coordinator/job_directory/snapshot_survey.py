"""Find the snapshots of a job in the job directory and choose the restore point of an epoch.

The choice is published in the job directory, so that a later attempt of the application and a
``--resume`` know which snapshots belong to one training run. The rules are in
``machine.restore_point``.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable, Mapping, Sequence

from submarine_runtime.coordinator.machine import (
    FINAL,
    FIRST_ROUND,
    PATH,
    SNAPSHOT,
    RestorePoint,
    RestoreQuery,
    Snapshot,
    TaskRestore,
    choose_restore_point,
)
from submarine_runtime.protocol import from_json, layout, to_json
from submarine_runtime.snapshots import (
    StoredFiles,
    base_of,
    chosen_snapshot,
    delete_snapshots,
    files_at_path,
    final_checkpoints,
    is_metadata,
    snapshots_of,
    step_of,
)
from submarine_runtime.storage import NotFoundError, Store, StoreError, retry

_POINT = re.compile(r"^point-(\d{6})\.json\Z")
THREADS = 8
#: Round of the final checkpoints of a job that succeeded: its programs ended by themselves.
LAST_ROUND = 1 << 30
#: Files of a library's metadata are small.
MAX_METADATA = 1 << 20


def point_name(epoch: int) -> str:
    """Return the relative path of the published restore point of an epoch."""
    return f"{layout.SNAPSHOTS}/point-{epoch:06d}.json"


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
    if not store.publish_exclusive(point_name(query.epoch), data):
        return _published(store, "", query.epoch) or choice
    return choice


def _chosen_among(
    found: Mapping[str, Sequence[Snapshot]], query: RestoreQuery, previous: RestorePoint | None
) -> RestorePoint:
    return choose_restore_point(
        found,
        query.policy,
        tasks=query.tasks,
        chief=query.chief,
        optional=query.optional,
        completed=query.completed,
        changing=previous.changing if previous is not None else None,
    )


def _published(store: Store, job: str, epoch: int) -> RestorePoint | None:
    name = point_name(epoch)
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
    # cost: logging and 0.8 MB of memory, which a job without a restart does not need.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(THREADS, len(tasks)) or 1) as pool:
        return previous, dict(zip(tasks, pool.map(find, tasks)))


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
    steps = {}
    for piece in found.files:
        if is_metadata(piece.path) and piece.size <= MAX_METADATA:
            text = b"".join(store.stream(piece.source, piece.offset, piece.size))
            step = tuple(step_of(piece.path, text))
            if step:
                steps[piece.path] = step
    return replace(snapshot, files=names, digests=digests, steps=steps)


def _at_path(store: Store, path: str, query: RestoreQuery) -> dict[str, list[Snapshot]]:
    found: dict[str, list[Snapshot]] = {}
    for task in (*query.tasks, *query.independent):
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


class SnapshotSurvey:
    """Choose restore points in a thread, one at a time.

    Parameters
    ----------
    post
        Posts ``restore_point`` or ``survey_failed`` to the event loop.
    save_grace
        Seconds to wait for an unavailable store.
    """

    def __init__(
        self,
        store: Store,
        post: Callable[[dict[str, Any]], None],
        save_grace: float,
    ) -> None:
        self._store, self._post, self._save_grace = store, post, save_grace
        self._busy = 0

    def start(self, query: RestoreQuery) -> None:
        """Start to choose the restore point for ``query``, unless its epoch is being chosen."""
        if self._busy != query.epoch:
            self._busy = query.epoch
            arguments = (query,)
            threading.Thread(target=self._run, args=arguments, name="survey", daemon=True).start()

    def _run(self, query: RestoreQuery) -> None:
        message: dict[str, Any] = {"type": "restore_point", "epoch": query.epoch}
        try:
            choice = retry(
                lambda: find_restore_point(self._store, query),
                time.monotonic() + self._save_grace,
                store=self._store,
            )
            message["choice"] = choice.to_json()
        except (StoreError, ValueError, OSError) as exc:
            message.update(type="survey_failed", detail=str(exc)[:1000])
        finally:
            self._busy = 0
        self._post(message)
