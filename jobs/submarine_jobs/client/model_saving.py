"""Save a version of a model: by the agent of a running job, or from the job directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from submarine_jobs.errors import ClusterError, StorageError, UsageError
from submarine_jobs.outputs import ModelVersion
from submarine_runtime.protocol import State, layout
from submarine_runtime.snapshots import (
    StoredFile,
    VersionDraft,
    VersionError,
    check_name,
    snapshots_of,
)
from submarine_runtime.storage import Store, StoreError
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def save_model(job: Job, name: str = "") -> ModelVersion:
    """Save the current model directory as a named version; default names are ``v1``, ``v2``, ...

    While the job runs, its agent uploads the files and training continues. After the end, the
    version is a copy of the final model.

    Raises
    ------
    UsageError
        If the name is invalid or in use, or there is no model yet.
    ClusterError
        If the job does not answer.
    """
    try:
        check_name(name)
        record = job.record()
        if record.state.ended:
            return _after_the_end(job, name)
        agent = job.agent()
        if agent is None or record.state not in (State.RUNNING, State.FINISHING):
            raise UsageError(
                _("{job} is {state}: its program is not running, so there is no model.").format(
                    job=job.id, state=record.state
                ),
                _("Save it while the job runs or after it has ended."),
            )
        try:
            return ModelVersion.from_json(agent.save(name))
        except ValueError as exc:
            raise ClusterError(
                _("The response of the job is invalid: {error}.").format(error=exc)
            ) from exc
    except VersionError as exc:
        raise UsageError(str(exc)) from exc
    except StoreError as exc:
        raise StorageError(_("No version was saved: {error}.").format(error=exc)) from exc


def _after_the_end(job: Job, name: str) -> ModelVersion:
    """Save the final model, or else the newest snapshot that was synced while the job ran."""
    directory = job.directory
    store = directory.storage.open_store(directory.path)
    files = list(_final(store))
    if not files:
        found = snapshots_of(store, "", job.chief, layout.MODEL)
        files = found[0].files if found else []
    if not files:
        raise VersionError(_("{job} left no model.").format(job=job.id))
    draft = VersionDraft(store)

    def add(file: StoredFile) -> dict[str, Any]:
        return draft.add(
            file.path, file.size, lambda: store.stream(file.source, file.offset, file.size)
        )

    try:
        return ModelVersion.from_json(draft.publish(name, [add(file) for file in files], []))
    except BaseException:
        draft.delete()
        raise


def _final(store: Store) -> Iterator[StoredFile]:
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
                yield StoredFile(path, f"{layout.MODEL}/{path}", entry.size)
