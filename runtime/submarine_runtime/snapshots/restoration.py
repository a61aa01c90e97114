"""Restore checkpoints before a program starts: the newest ones, or a chosen snapshot.

A task without a coordinator restores its newest complete snapshot; incomplete and damaged ones are
skipped. A task of a gang restores what the coordinator has chosen
(``coordinator.machine.restore_point``). ``writer`` and ``checkpoint_path`` write snapshots.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Sequence

from submarine_runtime.protocol import AgentConfig, layout
from submarine_runtime.snapshots.catalog import (
    StoredFile,
    StoredFiles,
    checkpoints_of_job,
    chosen_snapshot,
    files_at_path,
    snapshots_of,
)
from submarine_runtime.snapshots.checkpoint_path import base_of
from submarine_runtime.snapshots.event_pieces import assemble, task_directory
from submarine_runtime.snapshots.scan import STATE_FILE
from submarine_runtime.storage import (
    DamagedError,
    Fetcher,
    FileRequest,
    NotFoundError,
    Scratch,
    Store,
    StoreError,
    make_directories,
)
from submarine_runtime.translation import _

#: Number of attempts to read a checkpoint path that changes in the meantime.
TRIES = 3
#: Length of a file that holds a name.
MAX_NAME = 4096


@dataclass
class Restoration:
    """What was restored.

    Parameters
    ----------
    source
        Its name, displayed to users (``snapshot 7 of worker:0 e1-a1``); empty: nothing was found.
    files, bytes
        Number of files and bytes.
    skipped
        One sentence for each incomplete snapshot.
    others
        Files that are those of other tasks.
    began
        ``Manifest.began`` of the checkpoints; 0: not known.
    """

    source: str = ""
    files: int = 0
    bytes: int = 0
    others: Sequence[str] = ()
    began: float = 0.0
    skipped: list[str] = field(default_factory=list)


def restore(
    store: Store, scratch: Scratch, config: AgentConfig, task: str, chief: str | None
) -> Restoration:
    """Restore checkpoints, model and TensorBoard files of earlier attempts.

    The task's own newest snapshot of any epoch, else the chief's, else (a first start)
    ``config.restore_from``, else ``config.checkpoint_path``. Other files in the checkpoint
    directory are removed; the directory is unchanged if there is nothing to restore.

    Parameters
    ----------
    task
        Name of this task.
    chief
        Name of the chief's task; None: do not restore its checkpoints.

    Raises
    ------
    StoreError
        If the store fails for longer than ``config.save_grace``, or the local disk fails.
    """
    try:
        return _restore(store, scratch, config, task, chief)
    except OSError as exc:
        raise StoreError(
            _("cannot write {filename}: {strerror}").format(
                filename=exc.filename or scratch.root, strerror=exc.strerror
            )
        ) from exc


def _restore(
    store: Store, scratch: Scratch, config: AgentConfig, task: str, chief: str | None
) -> Restoration:
    fetching = Fetcher(store, config.save_grace)
    restored = Restoration()
    tasks = [task] if chief in (None, task) else [task, str(chief)]
    for candidate in _newest(store, fetching, config, tasks, restored):
        if _put(fetching, scratch, layout.CHECKPOINTS, candidate, restored):
            restored.source = candidate.name
            break
    _put_outputs(store, fetching, scratch, task, restored)
    return restored


def _newest(
    store: Store, fetching: Fetcher, config: AgentConfig, tasks: list[str], restored: Restoration
) -> Iterator[StoredFiles]:
    """Yield what can be restored, the best first: only sources of one kind."""
    over = restored.skipped
    own = False
    for task in tasks:
        for found in fetching.retry(
            lambda task=task: snapshots_of(store, "", task, layout.CHECKPOINTS, over)  # type: ignore[misc]
        ):
            own = True
            yield found
    if own:
        return
    if config.restore_from:
        source = config.restore_from.rstrip("/")
        yield from fetching.retry(lambda: checkpoints_of_job(store, source, tasks, over))
    if config.checkpoint_path:
        path = config.checkpoint_path
        bases = [base_of(path, tasks[0], len(tasks) == 1), base_of(path, tasks[-1], True)]
        for base in dict.fromkeys(bases):
            # Another job may still write there: a file that has disappeared has a successor.
            for _unused in range(TRIES):
                yield from fetching.retry(lambda base=base: files_at_path(store, base))  # type: ignore[misc]


def restore_chosen(
    store: Store, scratch: Scratch, config: AgentConfig, task: str, order: Mapping[str, Any]
) -> Restoration:
    """Restore what the coordinator has chosen for this start of the program.

    Parameters
    ----------
    order
        ``part``: the snapshot to restore, as ``restore_point.TaskRestore`` in JSON; None: the
        checkpoint directory is emptied. ``own``: the task restarts alone, and restores its own
        newest snapshot of this epoch or a later one; ``part`` only if there is none. ``shared``:
        path of the published restore point, whose ``shared`` tasks provide the files;
        those of the tasks in ``owned`` are this task's own.

    Raises
    ------
    DamagedError, NotFoundError
        If the chosen snapshot is incomplete.
    StoreError
        If the store fails for longer than ``config.save_grace``, or the local disk fails.
    """
    fetching = Fetcher(store, config.save_grace)
    restored = Restoration()
    try:
        own, part = order.get("own"), order.get("part")
        if order.get("shared"):
            _put_shared(store, fetching, scratch, order, restored)
        elif own is None or not _put_own(store, fetching, scratch, task, int(own), restored):
            if isinstance(part, Mapping):
                _put_part(store, fetching, scratch, part, restored)
            elif own is None:
                replace_directory(fetching, scratch.outputs[layout.CHECKPOINTS], [])
        if (config.epoch, config.attempt) > (1, 1):
            _put_outputs(store, fetching, scratch, task, restored)
    except OSError as exc:
        raise StoreError(
            _("cannot write {filename}: {strerror}").format(
                filename=exc.filename or scratch.root, strerror=exc.strerror
            )
        ) from exc
    return restored


def _put_own(
    store: Store, fetching: Fetcher, scratch: Scratch, task: str, since: int, restored: Restoration
) -> bool:
    over = restored.skipped
    found = fetching.retry(lambda: snapshots_of(store, "", task, layout.CHECKPOINTS, over, since))
    for candidate in found:
        if _put(fetching, scratch, layout.CHECKPOINTS, candidate, restored):
            restored.source = candidate.name
            return True
    return False


def _put_part(
    store: Store,
    fetching: Fetcher,
    scratch: Scratch,
    part: Mapping[str, Any],
    restored: Restoration,
) -> None:
    """Restore exactly one snapshot, without the files of later steps."""
    chosen, left_out = part["snapshot"], [str(name) for name in part.get("left_out") or ()]
    for attempt in range(TRIES):
        found = fetching.retry(lambda: chosen_snapshot(store, chosen))
        files = _without(found.files, left_out)
        root = scratch.outputs[layout.CHECKPOINTS]
        try:
            replace_directory(fetching, root, files)
        except (DamagedError, NotFoundError):
            # Another job may still write to a checkpoint path: the files have a successor.
            if chosen.get("origin") != "path" or attempt + 1 == TRIES:
                raise
            continue
        break
    if left_out:
        _name_remaining(root, files)
    restored.source = found.name
    if found.manifest is not None and not left_out:
        restored.began = found.manifest.began
    restored.files += len(files)
    restored.bytes += sum(piece.size for piece in files)


def _put_shared(
    store: Store,
    fetching: Fetcher,
    scratch: Scratch,
    order: Mapping[str, Any],
    restored: Restoration,
) -> None:
    """Restore the files of all tasks; of several with one name, those of the first task."""
    path, owned = str(order["shared"]), [str(one) for one in order.get("owned") or ()]
    point = json.loads(fetching.retry(lambda: store.read(path)) or b"{}")
    tasks = [str(task) for task in point.get("shared") or ()]
    for attempt in range(TRIES):
        pieces: dict[str, StoredFile] = {}
        writers: dict[str, str] = {}
        task = ""
        try:
            for task in tasks:
                part = point["parts"][task]
                chosen = part["snapshot"]
                found = fetching.retry(lambda chosen=chosen: chosen_snapshot(store, chosen))  # type: ignore[misc]
                for piece in _without(found.files, part.get("left_out") or ()):
                    if pieces.setdefault(piece.path, piece) is piece:
                        writers[piece.path] = task
                if task == owned[0] and found.manifest is not None:
                    restored.began = found.manifest.began
            replace_directory(fetching, scratch.outputs[layout.CHECKPOINTS], [*pieces.values()])
            break
        except (DamagedError, NotFoundError) as exc:
            if attempt + 1 < TRIES and any(
                point["parts"][one]["snapshot"].get("origin") == "path" for one in tasks
            ):
                continue  # Another job may still write to a checkpoint path.
            damaged = DamagedError(str(exc))
            named = (writers[name] for name, piece in pieces.items() if piece.source in str(exc))
            damaged.part = next(named, task)
            raise damaged from exc
    _name_remaining(scratch.outputs[layout.CHECKPOINTS], [*pieces.values()])
    restored.source = _("{path}, files of {count} tasks").format(path=path, count=len(tasks))
    restored.others = [name for name, task in writers.items() if task not in owned]
    restored.files += len(pieces)
    restored.bytes += sum(piece.size for piece in pieces.values())


def _without(files: Sequence[StoredFile], left_out: Sequence[Any]) -> list[StoredFile]:
    """Return ``files`` without the paths in ``left_out`` and what is below them."""
    out = {str(path) for path in left_out}
    return [piece for piece in files if out.isdisjoint(_paths_above(piece.path))]


def _paths_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _name_remaining(root: str, files: Sequence[StoredFile]) -> None:
    """Remove checkpoints that were not restored from TensorFlow's and DeepSpeed's state files."""
    for piece in files:
        directory, _, name = piece.path.rpartition("/")
        path = os.path.join(root, piece.path)
        if name == "latest":
            _name_newest(path)
        if name != STATE_FILE:
            continue
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(1 << 20).splitlines()
        there = []
        times = [line for line in lines if line.startswith("all_model_checkpoint_timestamps")]
        prefixes = [
            line.partition('"')[2].rpartition('"')[0]
            for line in lines
            if line.startswith("all_model_checkpoint_paths")
        ]
        for number, prefix in enumerate(prefixes):
            own = os.path.relpath(os.path.join(root, directory, prefix), root)
            if any(one.path.startswith((f"{own}.", f"{own}/")) for one in files):
                there.append((prefix, times[number] if number < len(times) else ""))
        os.unlink(path)
        if there:
            kept = [f'model_checkpoint_path: "{there[-1][0]}"']
            kept += [f'all_model_checkpoint_paths: "{prefix}"' for prefix, _ in there]
            kept += [moment for _, moment in there if moment]
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write("\n".join(kept) + "\n")


def _name_newest(path: str) -> None:
    """Make DeepSpeed's ``latest`` name the newest checkpoint that exists."""
    directory = os.path.dirname(path)
    with open(path, "rb") as file:
        named = file.read(MAX_NAME).decode("utf-8", "replace").strip()
    steps = [name for name in os.listdir(directory) if re.match(r"global_step\d+\Z", name)]
    if named.startswith("global_step") and named not in steps and steps:
        os.unlink(path)  # The file may be linked to one that is kept.
        with open(path, "w", encoding="utf-8") as state:
            state.write(max(steps, key=lambda name: int(name[len("global_step") :])))


def _put_outputs(
    store: Store, fetching: Fetcher, scratch: Scratch, task: str, restored: Restoration
) -> None:
    """Restore model and TensorBoard files of earlier attempts."""
    for candidate in fetching.retry(lambda: snapshots_of(store, "", task, layout.MODEL)):
        if _put(fetching, scratch, layout.MODEL, candidate, restored):
            break
    directory = task_directory(task)
    target = scratch.outputs[layout.TENSORBOARD]
    fetching.retry(lambda: assemble(store, directory, target))


def _put(
    fetching: Fetcher, scratch: Scratch, part: str, candidate: StoredFiles, restored: Restoration
) -> bool:
    try:
        replace_directory(fetching, scratch.outputs[part], candidate.files)
    except (DamagedError, NotFoundError) as exc:
        restored.skipped.append(
            _("The {candidate} was skipped: {error}.").format(candidate=candidate.name, error=exc)
        )
        return False
    if part == layout.CHECKPOINTS and candidate.manifest is not None:
        restored.began = candidate.manifest.began
    restored.files += len(candidate.files)
    restored.bytes += sum(file.size for file in candidate.files)
    return True


def delete_snapshots(store: Store) -> None:
    """Delete all snapshots and pieces: the job has ended and all of its outputs are saved.

    Raises
    ------
    StoreError
        If the store failed.
    """
    for name in (layout.SNAPSHOTS, layout.GROWING):
        store.delete(name, recursive=True)


def replace_directory(fetching: Fetcher, root: str, pieces: Sequence[StoredFile]) -> None:
    """Make ``root`` hold ``pieces`` and nothing else.

    Raises
    ------
    DamagedError
        If the bytes are not those that were saved.
    StoreError, OSError
        If the store or the local disk failed.
    """
    temporary, old = f"{root}.restoring", f"{root}.old"
    for leftover in (temporary, old):
        shutil.rmtree(leftover, ignore_errors=True)
    make_directories(temporary)
    wanted = []
    kept = []
    try:
        for piece in pieces:
            here = os.path.join(root, piece.path)
            there = os.path.join(temporary, piece.path)
            if _same(here, piece):
                kept.append((here, there))
            else:
                wanted.append(
                    FileRequest(
                        piece.source, there, piece.size, piece.offset, piece.crc, piece.modified_ns
                    )
                )
        fetching.fetch(wanted)
        for here, there in kept:
            make_directories(os.path.dirname(there))
            os.link(here, there)
        if os.path.isdir(root):
            os.rename(root, old)
        os.rename(temporary, root)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _same(here: str, piece: StoredFile) -> bool:
    """Return whether the file was restored or saved from there, and has not changed since."""
    if piece.modified_ns is None or os.path.islink(here):
        return False
    try:
        info = os.stat(here)
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) == (piece.size, piece.modified_ns)
