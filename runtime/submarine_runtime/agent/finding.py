"""Finds what may be put back: snapshots of a job, its final checkpoints, or a checkpoint path.

Reads names, sizes and manifests; fetches no checkpoint. Whether its bytes are right shows when it
is fetched.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Iterator, NamedTuple

from submarine_runtime.agent.manifest import Manifest, is_below
from submarine_runtime.agent.mirror import CONTROL, manifests
from submarine_runtime.agent.store import Entry, Store, StoreError
from submarine_runtime.protocol import layout

#: So many snapshots are looked at before giving up.
MOST_CANDIDATES = 8
#: More files than this in a checkpoint path are not checkpoints.
MAX_FILES = 20_000


class Piece(NamedTuple):
    """A file to put back: its path, where its bytes lie, and what is known of them."""

    path: str
    source: str
    size: int
    offset: int = 0
    crc: int | None = None
    modified_ns: int | None = None


class Found(NamedTuple):
    """Something that may be put back; ``name`` is for people."""

    name: str
    files: list[Piece]


def snapshots_of(
    store: Store, job: str, task: str, part: str, passed_over: list[str] | None = None
) -> list[Found]:
    """Snapshots of a task over all its attempts that have all their files, the newest first.

    Parameters
    ----------
    job
        Job directory; empty: the store's own.
    passed_over
        Gets one sentence for each that is not whole.
    """
    role, index = layout.split_task(task)
    directory = f"{layout.SNAPSHOTS}/{role}-{index}"
    if job:
        directory = f"{job}/{directory}"
    attempts = [(layout.parse_attempt(entry.name), entry) for entry in store.entries(directory)]
    found: list[Found] = []
    for _, attempt in sorted(item for item in attempts if item[0] is not None)[::-1]:
        place = f"{directory}/{attempt.name}"
        entries = {entry.name: entry for entry in store.entries(place)}
        for name in sorted(entries, reverse=True):
            if not (name.startswith(f"{part}-") and name.endswith(".json")):
                continue
            if len(found) >= MOST_CANDIDATES:
                return found
            shown = f"snapshot {name[len(part) + 1 : -5].lstrip('0')} of {task} {attempt.name}"
            try:
                manifest = Manifest.from_bytes(store.read(f"{place}/{name}") or b"")
                found.append(Found(shown, _pieces(place, manifest, entries)))
            except ValueError as exc:
                if passed_over is not None:
                    passed_over.append(f"The {shown} was passed over: {exc}.")
    return found


def _pieces(place: str, manifest: Manifest, entries: dict[str, Entry]) -> list[Piece]:
    pieces = []
    for file in manifest.files:
        entry = entries.get(file.data)
        if entry is None or entry.size < file.offset + file.size:
            raise ValueError(f"the bytes of {file.path!r} are not there")
        source = f"{place}/{file.data}"
        pieces.append(Piece(file.path, source, file.size, file.offset, file.crc, file.modified_ns))
    return pieces


def from_job(store: Store, job: str, tasks: list[str], passed_over: list[str]) -> list[Found]:
    """The newest of another job: its final checkpoints where its record says so, or snapshots."""
    found: list[Found] = []
    data = store.read(f"{job}/{layout.RECORD}")
    with suppress(ValueError):  # a record that nobody can read
        record = json.loads(data or b"{}")
        for task in tasks:
            found += _final(job, task, record, last=task == tasks[-1])
    for task in tasks:
        found += snapshots_of(store, job, task, layout.CHECKPOINTS, passed_over)
    return found


def _final(job: str, task: str, record: dict[str, object], *, last: bool) -> Iterator[Found]:
    """The chief's (the last task's) lie in ``checkpoints/``, any other's below ``tasks/``."""
    outputs = record.get("outputs")
    missing = record.get("missing")
    lost = [s for s in missing if isinstance(s, str)] if isinstance(missing, list) else []
    if not isinstance(outputs, list) or any(layout.CHECKPOINTS in sentence for sentence in lost):
        return
    role, index = layout.split_task(task)
    own = f"{layout.TASKS}/{role}-{index}/{layout.CHECKPOINTS}/"
    for prefix in (own, f"{layout.CHECKPOINTS}/") if last else (own,):
        pieces = [
            Piece(output["path"][len(prefix) :], f"{job}/{output['path']}", int(output["size"]))
            for output in outputs
            if str(output["path"]).startswith(prefix) and is_below(str(output["path"]))
        ]
        if pieces:
            yield Found(f"{prefix.rstrip('/')} of {job.rpartition('/')[2]}", pieces)
            return


def from_path(store: Store, base: str) -> list[Found]:
    """All that lies at a checkpoint path, with what its newest manifest still has to rename."""
    pieces = {piece.path: piece for piece in _walk(store, base)}
    for _, manifest in manifests(store, base):
        for file in manifest.files:
            staged = f"{base}/{file.data}"
            if file.data and store.stat(staged) is not None:
                pieces[file.path] = Piece(
                    file.path, staged, file.size, 0, file.crc, file.modified_ns
                )
            elif file.path in pieces and pieces[file.path].size == file.size:
                # Its own time, so that it is known again and not uploaded a second time.
                pieces[file.path] = pieces[file.path]._replace(modified_ns=file.modified_ns)
        break
    return [Found(f"checkpoint path {base}", list(pieces.values()))] if pieces else []


def _walk(store: Store, base: str) -> Iterator[Piece]:
    pending = [""]
    count = 0
    while pending:
        directory = pending.pop()
        for entry in store.entries(f"{base}/{directory}".rstrip("/")):
            path = f"{directory}/{entry.name}".lstrip("/")
            count += 1
            if entry.name.startswith(".") or path == CONTROL or not is_below(path):
                continue
            if count > MAX_FILES:
                raise StoreError(f"more than {MAX_FILES} files lie at {base}")
            if entry.is_directory:
                pending.append(path)
            else:
                yield Piece(path, f"{base}/{path}", entry.size)
