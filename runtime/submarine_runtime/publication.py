"""Publish the outputs of ``--save-output``, and the model of ``--saved_model_path``, by a rename.

The tasks stage their files in a hidden directory beside the target and list them in the job
directory. Only files that the lists of successful tasks name are published, with ``_SUCCESS`` as
the last one. Agents (of jobs with one task) and coordinators use this module.
"""

from __future__ import annotations

import json
import posixpath
import time
from contextlib import suppress
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, TypeVar

from submarine_runtime.files import TEMPORARY_PREFIX
from submarine_runtime.protocol import (
    APPEND_RUN,
    OVERWRITE,
    JobSpec,
    NamedOutput,
    SavedOutput,
    chief_of,
    expected_members,
    layout,
)
from submarine_runtime.snapshots import digest_of
from submarine_runtime.storage import NotFoundError, Store, StoreError
from submarine_runtime.translation import _

T = TypeVar("T")
#: Repeats a call after transient errors.
Attempt = Callable[[Callable[[], Any]], Any]
#: The last file of a published directory: JSON with the job, the number of files, and bytes.
SUCCESS = "_SUCCESS"
#: Directory in the target of a stream: one file for each part, and the job in ``OWNER``.
MANIFEST = "_manifest"
OWNER = "_job.json"
#: The manifest of a published model: its origin, and path, size and SHA-256 of each file.
MODEL_MANIFEST = "submarine-model.json"
MODEL_FORMAT = 1
#: Names of a target and of the job in the hidden name beside it are cut to this length.
_MAX_NAME = 40


class PublicationError(Exception):
    """An output was not published; one sentence."""


class Published(NamedTuple):
    """The outputs that were published, a failure (one sentence, or empty), and warnings."""

    outputs: list[SavedOutput]
    failure: str = ""
    warnings: tuple[str, ...] = ()


def staging_path(target: str, job_id: str, suffix: str = "new") -> str:
    """Return the hidden directory beside ``target``: of new files, or ``old`` of replaced ones."""
    parent, name = posixpath.split(target)
    return posixpath.join(parent, f".{name[:_MAX_NAME]}.{job_id}.{suffix}")


def writes_outputs(spec: JobSpec) -> int:
    """Return the number of tasks that may publish files: those that must succeed."""
    return sum(role.instances for role in spec.roles if role.kind == "tracked")


def writes(spec: JobSpec, output: NamedOutput, task: str) -> bool:
    """Return whether a task has files of an output: only the chief has those of the model."""
    return not output.is_model or chief_of(expected_members(spec.roles)).task == task


def new_manifest(origin: Mapping[str, Any], files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest of a model's files with ``path``, ``size`` and ``sha256``."""
    listed = sorted(files, key=lambda file: str(file["path"]))
    return {
        "format": MODEL_FORMAT,
        **origin,
        "published": time.time(),
        "size": sum(file["size"] for file in listed),
        "digest": digest_of(listed),
        "files": listed,
    }


def part_path(path: str, task: str, several: bool) -> str:
    """Return the path of a task's file in the target.

    In a job of several tasks the name begins with the task, after a leading ``_`` or ``.``, which
    hides a file from Hive and Spark: ``day=1/worker-0-part.csv``, ``_worker-0-metadata``.
    """
    if not several:
        return path
    directory, name = posixpath.split(path)
    mark = name[0] if name[0] in "_." else ""
    return posixpath.join(directory, f"{mark}{layout.task_directory(task)}-{name[len(mark) :]}")


def own_path(path: str, task: str, several: bool) -> str | None:
    """Return the task's name of a file in the target; None if it is another task's."""
    directory, name = posixpath.split(path)
    mark = name[0] if several and name[0] in "_." else ""
    prefix = f"{layout.task_directory(task)}-" if several else ""
    if not name.startswith(mark + prefix):
        return None
    return posixpath.join(directory, mark + name[len(mark + prefix) :])


def list_path(name: str, task: str) -> str:
    """Return the list of a task's files for the output ``name``, in the job directory."""
    return f"{layout.SAVED}/{name}/{layout.task_directory(task)}.json"


def set_modes(store: Store, output: NamedOutput, job_id: str) -> None:
    """Give new files the permissions of the target's nearest directory, without write for others.

    Raises
    ------
    StoreError
        If the file system does not answer.
    """
    top, entry = output.uri, None
    while entry is None and top != "/":
        new, top = top, posixpath.dirname(top)
        entry = store.stat(top)
    mode = (entry.mode if entry is not None else 0) & 0o755 | 0o700
    for path in (new, staging_path(output.uri, job_id)):
        store.modes[path] = mode


def walk(store: Store, root: str, skip: str = "") -> dict[str, int]:
    """Return path below ``root`` -> bytes of all files, except those in its directory ``skip``."""
    found: dict[str, int] = {}
    pending = [""]
    while pending:
        directory = pending.pop()
        for entry in store.entries(f"{root}/{directory}".rstrip("/")):
            path = f"{directory}/{entry.name}" if directory else entry.name
            if not entry.is_directory:
                found[path] = entry.size
            elif path != skip:
                pending.append(path)
    return found


def publish_outputs(
    store: Store,
    outputs: Sequence[NamedOutput],
    spec: JobSpec,
    job_id: str,
    tasks: Mapping[str, tuple[int, int]],
    attempt: Attempt,
) -> Published:
    """Publish all outputs of a job that has succeeded; a further call continues.

    Parameters
    ----------
    outputs
        With absolute paths in the file system of ``store``.
    tasks
        Successful task -> epoch and attempt that succeeded.
    """
    done: list[SavedOutput] = []
    warnings: list[str] = []
    uris = {
        one.name: one.uri.rstrip("/") + (f"/{job_id}" if one.mode == APPEND_RUN else "")
        for one in spec.published
    }
    failing = outputs[0]
    try:
        listed = {one.name: attempt(lambda: _listed(store, one, spec, tasks)) for one in outputs}  # noqa: B023
        for one in outputs:  # Before the first is published.
            attempt(lambda: set_modes(store, one, job_id))  # noqa: B023
            if not one.stream:
                attempt(lambda: _check_free(store, one, job_id))  # noqa: B023
        for one in outputs:
            failing, (files, digests) = one, listed[one.name]
            uri = uris.get(one.name, one.uri)
            if one.is_model and not files:
                discard_outputs(store, [one], job_id)
                warnings.append(
                    _(
                        "--saved_model_path: the program wrote no file to SUBMARINE_MODEL_DIR, so "
                        "nothing was published."
                    )
                )
                continue
            manifest = b""
            if one.is_model:
                manifest = _manifest(spec, job_id, files, digests)
            attempt(lambda: _publish(store, one, job_id, files, manifest))  # noqa: B023
            done.append(SavedOutput(one.name, uri, len(files), sum(files.values())))
            if not files:
                warnings.append(
                    _("{option}: the program wrote no file, so {uri} is empty.").format(
                        option=one.option, uri=uri
                    )
                )
    except (PublicationError, StoreError) as exc:
        sentence = str(exc)
        if isinstance(exc, StoreError):
            sentence = _("{option} was not published: {error}.").format(
                option=failing.option, error=exc
            )
        return Published(done, sentence, tuple(warnings))
    return Published(done, "", tuple(warnings))


def discard_outputs(store: Store, outputs: Sequence[NamedOutput], job_id: str) -> None:
    """Delete the staged files of a job that has not succeeded, if the file system answers."""
    for one in outputs:
        if not one.stream:
            with suppress(StoreError):  # The name is hidden.
                store.delete(staging_path(one.uri, job_id), recursive=True)


def _manifest(
    spec: JobSpec, job_id: str, files: Mapping[str, int], digests: Mapping[str, str]
) -> bytes:
    lineage = {
        **{"job": job_id, "program": spec.program, "bundle_digest": spec.bundle_digest},
        **{"notebook": spec.notebook, "cell": spec.cell_id, "parameters": dict(spec.params)},
    }
    origin = {"job": job_id, "version": "", "lineage": lineage}
    listed = [{"path": path, "size": size, "sha256": digests[path]} for path, size in files.items()]
    return json.dumps(new_manifest(origin, listed), indent=1).encode()


def _listed(
    store: Store,
    output: NamedOutput,
    spec: JobSpec,
    tasks: Mapping[str, tuple[int, int]],
) -> tuple[dict[str, int], dict[str, str]]:
    """Return path in the target -> bytes, and of a model SHA-256, of the files of all tasks."""
    found: dict[str, int] = {}
    digests: dict[str, str] = {}
    for task, run in tasks.items():
        if not writes(spec, output, task):
            continue
        data = store.read(list_path(output.name, task))
        content = json.loads(data) if data is not None else {}
        if (content.get("epoch"), content.get("attempt")) != run:
            raise PublicationError(
                _("{option}: the files of {task} were not saved.").format(
                    option=output.option, task=task
                )
            )
        found.update(content["files"])
        digests.update(content.get("digests") or {})
    return found, digests


def owner_of(store: Store, target: str) -> str:
    """Return the job that has published ``target``; empty if it was none."""
    for path in (f"{target}/{SUCCESS}", f"{target}/{MANIFEST}/{OWNER}"):
        with suppress(ValueError, AttributeError):
            if data := store.read(path):
                return str(json.loads(data).get("job"))
    return ""


def _check_free(store: Store, output: NamedOutput, job_id: str) -> bool:
    """Return whether the target has files that the output may replace.

    Raises
    ------
    PublicationError
        If the target is not free.
    """
    target, entry = output.uri, store.stat(output.uri)
    if entry is None:
        return False
    occupied = not entry.is_directory or bool(store.entries(target))
    if occupied and (
        not entry.is_directory or (output.mode != OVERWRITE and owner_of(store, target) != job_id)
    ):
        raise PublicationError(
            _(
                "{option}: {target} was filled while the job ran; the files of the job are in "
                "{staging}."
            ).format(option=output.option, target=target, staging=staging_path(target, job_id))
        )
    return occupied


def _publish(
    store: Store, output: NamedOutput, job_id: str, files: Mapping[str, int], manifest: bytes
) -> None:
    total = {"job": job_id, "files": len(files), "bytes": sum(files.values())}
    success = json.dumps(total).encode()
    if output.stream:
        for path in walk(store, output.uri, MANIFEST):
            if posixpath.basename(path).startswith(TEMPORARY_PREFIX):
                store.delete(f"{output.uri}/{path}")  # Of a task that was lost.
        store.publish(f"{output.uri}/{SUCCESS}", success)
        return
    staging, old = (staging_path(output.uri, job_id, suffix) for suffix in ("new", "old"))
    if not store.exists(staging) and owner_of(store, output.uri) == job_id:
        _delete_old(store, old)
        return  # An earlier call has published it.
    for path in walk(store, staging):
        if path not in files:
            store.delete(f"{staging}/{path}")  # Of a task or an attempt that was lost.
    store.make_directory(staging)
    if manifest:
        store.publish(f"{staging}/{MODEL_MANIFEST}", manifest)
    store.publish(f"{staging}/{SUCCESS}", success)
    if _check_free(store, output, job_id):
        store.delete(old, recursive=True)
        store.move(output.uri, old)
    try:
        store.move(staging, output.uri)
    except StoreError as exc:
        if not exc.transient:
            with suppress(StoreError):
                if not store.exists(output.uri):
                    store.move(old, output.uri)
        if isinstance(exc, NotFoundError) and owner_of(store, output.uri) == job_id:
            _delete_old(store, old)
            return  # The reply to an earlier rename was lost.
        raise
    _delete_old(store, old)


def _delete_old(store: Store, old: str) -> None:
    with suppress(StoreError):  # The name is hidden.
        store.delete(old, recursive=True)
