"""Clears away what a job root remembers of headless runs whose jobs are no longer there.

Once a process, a few of the oldest; whoever deletes old job directories thus clears this too.
"""

from __future__ import annotations

import contextlib
import json
import time

from submarine_jobs.errors import StorageError
from submarine_jobs.storage import Storage
from submarine_runtime.protocol import layout

#: Seconds that a run is left alone after its last start.
LEAST_AGE = 7 * 86400.0
#: Runs that are looked at, and starts of one run.
MOST_RUNS, MOST_STARTS = 20, 200
#: Bytes of the description of one start.
MAX_START = 1 << 16
_swept: set[str] = set()


def sweep(storage: Storage, root: str, now: float | None = None) -> None:
    """Delete the oldest runs below ``root`` that have no job any more; fails in silence."""
    runs = f"{root.rstrip('/')}/{layout.RUNS}"
    if storage.url(runs) in _swept:
        return
    _swept.add(storage.url(runs))
    before = (time.time() if now is None else now) - LEAST_AGE
    with contextlib.suppress(StorageError, FileNotFoundError):
        old = [entry for entry in storage.list_directory(runs) if entry.modified < before]
        for entry in sorted(old, key=lambda found: found.modified)[:MOST_RUNS]:
            if not _has_job(storage, root, f"{runs}/{entry.name}"):
                storage.delete(f"{runs}/{entry.name}", recursive=True)


def _has_job(storage: Storage, root: str, run: str) -> bool:
    starts = storage.list_directory(run)
    if len(starts) > MOST_STARTS:
        return True
    for start in starts:
        try:
            job_id = str(json.loads(storage.read(f"{run}/{start.name}", 0, MAX_START))["job_id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        directory = layout.job_directory(root, job_id) if layout.is_job_id(job_id) else ""
        if directory and storage.stat(directory) is not None:
            return True
    return False
