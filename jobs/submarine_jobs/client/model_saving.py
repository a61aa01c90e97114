"""Save a version of a job's model: by its agent while it runs, from the job directory afterwards.

Does not list versions (``models``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import ClusterError, StorageError, UsageError
from submarine_jobs.outputs import ModelVersion
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.states import State
from submarine_runtime.snapshots import Draft, Piece, VersionError, check_name, snapshots_of
from submarine_runtime.storage import Store, StoreError, open_store

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def save_model(job: Job, name: str = "") -> ModelVersion:
    """Save the model directory as it is now as a named version, ``v1`` and so on where no name is.

    While the job runs its agent uploads it and training goes on; after the end the final model
    becomes the version.

    Raises
    ------
    UsageError
        If the name is bad or taken, or there is no model yet.
    ClusterError
        If nobody answers.
    """
    try:
        check_name(name)
        record = job.record()
        if record.state.ended:
            return _after_the_end(job, name)
        agent = job.agent()
        if agent is None or record.state not in (State.RUNNING, State.FINISHING):
            raise UsageError(
                f"{job.id} is {record.state}: its program is not running, so there is no model.",
                "Save when it runs, or after it has ended.",
            )
        try:
            return ModelVersion.from_json(agent.save(name))
        except ValueError as exc:
            raise ClusterError(f"The job's answer was {exc}.") from exc
    except VersionError as exc:
        raise UsageError(str(exc)) from exc
    except StoreError as exc:
        raise StorageError(f"No version was saved: {exc}.") from exc


def _after_the_end(job: Job, name: str) -> ModelVersion:
    """Of the final model; where the job could not save one, of what was synced while it ran."""
    directory = job.directory
    store = open_store(directory.storage.job_store(directory.path))
    files = list(_final(store))
    if not files:
        found = snapshots_of(store, "", job.chief, layout.MODEL)
        files = found[0].files if found else []
    if not files:
        raise VersionError(f"{job.id} left no model.")
    draft = Draft(store)

    def add(file: Piece) -> dict[str, Any]:
        return draft.add(
            file.path, file.size, lambda: store.stream(file.source, file.offset, file.size)
        )

    try:
        return ModelVersion.from_json(draft.publish(name, [add(file) for file in files], []))
    except BaseException:
        draft.drop()
        raise


def _final(store: Store) -> Iterator[Piece]:
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in store.entries(f"{layout.MODEL}/{folder}".rstrip("/")):
            path = f"{folder}/{entry.name}".lstrip("/")
            if entry.name.startswith(layout.TEMPORARY_PREFIX):
                continue
            if entry.is_directory:
                pending.append(path)
            else:
                yield Piece(path, f"{layout.MODEL}/{path}", entry.size)
