"""Complete or remove what a job that was killed left of its ``--save-output`` directories."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from submarine_runtime.protocol import APPEND_RUN
from submarine_runtime.publication import staging_path
from submarine_runtime.storage import Store, StoreError

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory
    from submarine_jobs.model import JobSpec


def settle_outputs(directory: JobDirectory, spec: JobSpec, job_id: str) -> None:
    """Settle the outputs of an ended job; errors of the file system are ignored.

    A publication that was interrupted between its two renames is completed. Staged files of other
    outputs are deleted. Streams keep their parts, each of which is complete.
    """
    store = directory.storage.open_store(directory.path)
    for output in spec.published:
        target = directory.storage.path_of(output.uri)
        if target is None or output.stream:
            continue
        if output.mode == APPEND_RUN:
            target = f"{target}/{job_id}"
        with suppress(StoreError):  # The names are hidden.
            _settle(store, target, job_id)


def _settle(store: Store, target: str, job_id: str) -> None:
    staging, old = (staging_path(target, job_id, suffix) for suffix in ("new", "old"))
    if store.exists(old):
        # Nothing is renamed to `old` before the staged files are complete.
        if not store.exists(target):
            store.move(staging if store.exists(staging) else old, target)
        elif store.exists(staging):
            return  # Another program has created the target: nothing is lost.
        store.delete(old, recursive=True)
    store.delete(staging, recursive=True)
