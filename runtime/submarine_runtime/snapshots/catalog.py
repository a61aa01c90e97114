"""Find what can be restored: snapshots of a job, its final checkpoints, or a checkpoint path.

Reads names, sizes and manifests. The bytes of checkpoints are verified when they are fetched.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Iterator, Mapping, NamedTuple

from submarine_runtime.protocol import CHIEF_ROLES, layout
from submarine_runtime.snapshots.checkpoint_path import CONTROL, manifests
from submarine_runtime.snapshots.manifest import Manifest, is_below
from submarine_runtime.snapshots.scan import PARTS_FILE
from submarine_runtime.storage import Entry, NotFoundError, Store, StoreError
from submarine_runtime.translation import _

#: Maximum number of snapshots that are considered.
MAX_CANDIDATES = 8
#: A checkpoint path with more files than this is not a checkpoint directory.
MAX_FILES = 20_000


class StoredFile(NamedTuple):
    """A file to restore: its path, the location of its bytes, and its known attributes."""

    path: str
    source: str
    size: int
    offset: int = 0
    crc: int | None = None
    modified_ns: int | None = None


class StoredFiles(NamedTuple):
    """A set of files that can be restored; ``name`` is displayed to users.

    A snapshot has its manifest, and epoch and attempt of the program that wrote it.
    """

    name: str
    files: list[StoredFile]
    manifest: Manifest | None = None
    attempt: tuple[int, int] | None = None


def snapshots_of(
    store: Store,
    job: str,
    task: str,
    part: str,
    skipped: list[str] | None = None,
    since: int = 0,
) -> list[StoredFiles]:
    """Return the complete snapshots of a task over all its attempts, the newest first.

    Parameters
    ----------
    job
        Job directory; empty: the store's own.
    skipped
        Receives one sentence for each incomplete snapshot.
    since
        Omit attempts of earlier epochs.
    """
    role, index = layout.split_task(task)
    directory = f"{layout.SNAPSHOTS}/{role}-{index}"
    if job:
        directory = f"{job}/{directory}"
    attempts = [(layout.parse_attempt(entry.name), entry) for entry in store.entries(directory)]
    found: list[StoredFiles] = []
    for numbers, attempt in sorted(item for item in attempts if item[0] is not None)[::-1]:
        if numbers is not None and numbers[0] < since:
            break
        place = f"{directory}/{attempt.name}"
        entries = {entry.name: entry for entry in store.entries(place)}
        for name in sorted(entries, reverse=True):
            if not (name.startswith(f"{part}-") and name.endswith(".json")):
                continue
            if len(found) >= MAX_CANDIDATES:
                return found
            shown = _("snapshot {name} of {task} {attempt}").format(
                name=name[len(part) + 1 : -5].lstrip("0"), task=task, attempt=attempt.name
            )
            try:
                manifest = Manifest.from_bytes(store.read(f"{place}/{name}") or b"")
                found.append(
                    StoredFiles(shown, _pieces(place, manifest, entries), manifest, numbers)
                )
            except ValueError as exc:
                if skipped is not None:
                    skipped.append(
                        _("The {shown} was skipped: {error}.").format(shown=shown, error=exc)
                    )
    return found


def _pieces(place: str, manifest: Manifest, entries: dict[str, Entry]) -> list[StoredFile]:
    pieces = []
    for file in manifest.files:
        entry = entries.get(file.data)
        if entry is None or entry.size < file.offset + file.size:
            raise ValueError(f"the bytes of {file.path!r} are missing")
        source = f"{place}/{file.data}"
        pieces.append(
            StoredFile(file.path, source, file.size, file.offset, file.crc, file.modified_ns)
        )
    return pieces


def checkpoints_of_job(
    store: Store, job: str, tasks: list[str], skipped: list[str]
) -> list[StoredFiles]:
    """Return the newest checkpoints of another job: final ones if recorded, or snapshots.

    Parameters
    ----------
    job
        Path of the job directory.
    tasks
        Names of tasks in order of preference, the chief last.
    skipped
        Receives one sentence for each incomplete snapshot.
    """
    found: list[StoredFiles] = []
    data = store.read(f"{job}/{layout.RECORD}")
    with suppress(ValueError, RecursionError):  # The record cannot be read.
        record = json.loads(data or b"{}")
        for task in tasks:
            found += _final(store, job, task, record, last=task == tasks[-1])
    for task in tasks:
        found += snapshots_of(store, job, task, layout.CHECKPOINTS, skipped)
    return found


def _final(
    store: Store, job: str, task: str, record: dict[str, object], *, last: bool
) -> Iterator[StoredFiles]:
    """Yield final checkpoints: ``checkpoints/`` for the last task (chief), else ``tasks/NAME/``."""
    outputs = record.get("outputs")
    missing = record.get("missing")
    lost = [s for s in missing if isinstance(s, str)] if isinstance(missing, list) else []
    if not isinstance(outputs, list) or any(layout.CHECKPOINTS in sentence for sentence in lost):
        return
    role, index = layout.split_task(task)
    own = f"{layout.TASKS}/{role}-{index}/{layout.CHECKPOINTS}/"
    for prefix in (own, f"{layout.CHECKPOINTS}/") if last else (own,):
        # The record lists a limited number of outputs; the directory has all of them.
        saved = any(str(output["path"]).startswith(prefix) for output in outputs)
        pieces = list(_walk(store, f"{job}/{prefix}".rstrip("/"))) if saved else []
        if pieces:
            yield StoredFiles(
                _("{prefix} of {job}").format(
                    prefix=prefix.rstrip("/"), job=job.rpartition("/")[2]
                ),
                pieces,
            )
            return


def chosen_snapshot(store: Store, chosen: Mapping[str, Any]) -> StoredFiles:
    """Return the snapshot that the coordinator has chosen, a ``restore_point.Snapshot`` in JSON.

    Raises
    ------
    NotFoundError
        If it does not exist any more, or its manifest cannot be read.
    """
    job, task, origin = str(chosen.get("job") or ""), str(chosen["task"]), chosen.get("origin")
    if origin == "path":
        found = files_at_path(store, job)
    elif origin == "final":
        found = final_checkpoints(store, job, task)
    else:
        role, index = layout.split_task(task)
        attempt = layout.attempt_name(int(chosen["epoch"]), int(chosen["attempt"]))
        place = f"{layout.SNAPSHOTS}/{role}-{index}/{attempt}"
        place = f"{job}/{place}" if job else place
        number = int(chosen["number"])
        shown = _("snapshot {number} of {task} {attempt}").format(
            number=number, task=task, attempt=attempt
        )
        try:
            data = store.read(f"{place}/{layout.CHECKPOINTS}-{number:06d}.json")
            manifest = Manifest.from_bytes(data or b"")
        except ValueError as exc:
            raise NotFoundError(f"{shown}: {exc}") from exc
        pieces = [
            StoredFile(f.path, f"{place}/{f.data}", f.size, f.offset, f.crc, f.modified_ns)
            for f in manifest.files
        ]
        found = [StoredFiles(shown, pieces, manifest)]
    if not found:
        raise NotFoundError(_("there is nothing at {job} for {task}").format(job=job, task=task))
    return found[0]


def final_checkpoints(store: Store, job: str, task: str) -> list[StoredFiles]:
    """Return the final checkpoints of one task of a job, as its record lists them."""
    try:
        record = json.loads(store.read(f"{job}/{layout.RECORD}") or b"{}")
        written = [one["task"] for one in record.get("tasks") or ()]
        return list(_final(store, job, task, record, last=task == _chief(written)))
    except (ValueError, TypeError, KeyError, AttributeError):
        return []  # The record cannot be read.


def _chief(tasks: list[str]) -> str:
    names = [f"{role}:0" for role in CHIEF_ROLES]
    return next((name for name in names if name in tasks), tasks[0] if tasks else "")


def files_at_path(store: Store, base: str) -> list[StoredFiles]:
    """Return all files at a checkpoint path, with those that its newest manifest will rename."""
    pieces = {piece.path: piece for piece in _walk(store, base)}
    for _unused, manifest in manifests(store, base):
        for file in manifest.files:
            staged = f"{base}/{file.data}"
            if file.data and store.stat(staged) is not None:
                pieces[file.path] = StoredFile(
                    file.path, staged, file.size, 0, file.crc, file.modified_ns
                )
            elif file.path in pieces and pieces[file.path].size == file.size:
                # The recorded time, so that the file is recognised and not uploaded again.
                pieces[file.path] = pieces[file.path]._replace(modified_ns=file.modified_ns)
        break
    return (
        [StoredFiles(_("checkpoint path {base}").format(base=base), list(pieces.values()))]
        if pieces
        else []
    )


def _walk(store: Store, base: str) -> Iterator[StoredFile]:
    pending = [""]
    count = 0
    while pending:
        directory = pending.pop()
        for entry in store.entries(f"{base}/{directory}".rstrip("/")):
            path = f"{directory}/{entry.name}".lstrip("/")
            count += 1
            hidden = entry.name.startswith(".") and entry.name != PARTS_FILE
            if hidden or path == CONTROL or not is_below(path):
                continue
            if count > MAX_FILES:
                raise StoreError(
                    _("there are more than {max_files} files at {base}").format(
                        max_files=MAX_FILES, base=base
                    )
                )
            if entry.is_directory:
                pending.append(path)
            else:
                yield StoredFile(path, f"{base}/{path}", entry.size)
