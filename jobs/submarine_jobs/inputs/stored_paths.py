"""Resolve ``--input``, ``--checkpoint_path`` and ``--resume`` to paths of the job's file system.

Agents access only the file system of the job directory; other URIs are refused. No files are
copied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.model import JobSpec, NamedInput, fetched_input, is_tensorboard
from submarine_jobs.storage import Storage, encryption_zone_error
from submarine_runtime.agent.preparation import (
    WHOLE,
    InputError,
    SourceFile,
    divide,
    list_input,
    shard_of_task,
)
from submarine_runtime.frameworks import sharding_tasks
from submarine_runtime.protocol import expected_members, layout
from submarine_runtime.storage import StoreError
from submarine_runtime.translation import _

_USER = re.compile(r"//[^/@]*@")


@dataclass(frozen=True)
class StorePaths:
    """Paths that a job reads from the store; see ``AgentConfig``."""

    fetch: tuple[NamedInput, ...] = ()
    checkpoint_path: str | None = None
    restore_from: str | None = None


NO_STORE_PATHS = StorePaths()


def resolve_store_paths(spec: JobSpec, storage: Storage, root: str) -> StorePaths:
    """Resolve the URIs of ``spec`` to paths in the store; ``root`` is the job root.

    Raises
    ------
    UsageError
        If an input or the job to resume is on another file system or does not exist, or a path is
        in an encryption zone.
    StorageError
        If the file system does not answer.
    """
    if spec.saved_model_path and "saved_model_path" not in spec.passed_on:
        raise UsageError(
            _(
                "--saved_model_path {uri}: no command, argument or environment "
                "variable uses %saved_model_path%, so nothing would be written there."
            ).format(uri=without_user(spec.saved_model_path)[:200]),
            _(
                "Pass %saved_model_path% to the program, or leave the option out: what the "
                "program writes to SUBMARINE_MODEL_DIR is saved with the job."
            ),
        )
    return StorePaths(
        tuple(_inputs(spec, storage)),
        _checkpoint_path(spec, storage),
        _restore_from(spec, storage, root),
    )


def without_user(uri: str) -> str:
    """Return ``uri`` without user and password, for display."""
    return _USER.sub("//", uri)


def _checkpoint_path(spec: JobSpec, storage: Storage) -> str | None:
    """Return the path of the checkpoints; None: none, or the program writes them itself."""
    uri = spec.checkpoint_path
    if not uri:
        return None
    path = storage.path_of(uri)
    if path is None and "checkpoint_path" not in spec.passed_on:
        raise UsageError(
            _(
                "--checkpoint_path {uri} is not in the file system of the job "
                "directory, {prefix}, and no command, argument or environment variable uses "
                "%checkpoint_path%, so nothing would be written there."
            ).format(uri=without_user(uri)[:200], prefix=storage.prefix),
            _(
                "Give an absolute path in {prefix}, or pass %checkpoint_path% to the program."
            ).format(prefix=storage.prefix),
        )
    if path is not None and storage.in_encryption_zone(path):
        raise encryption_zone_error(
            "--checkpoint_path",
            storage.url(path),
            _("Name a directory outside of encryption zones."),
        )
    return path


def _inputs(spec: JobSpec, storage: Storage) -> list[NamedInput]:
    found = []
    for item in spec.inputs:
        path = storage.path_of(item.uri)
        if path is None:
            raise UsageError(
                _(
                    "--input {item}={uri} is not in the file system of the job directory, {prefix}."
                ).format(item=item.name, uri=without_user(item.uri)[:200], prefix=storage.prefix),
                _("Copy it there, or let the program read it by itself with --input_path."),
            )
        entry = storage.inspect(path)
        if entry is None:
            raise UsageError(
                _("--input {item}: there is no {url}.").format(
                    item=item.name, url=storage.url(path)
                ),
                _("Check the address."),
            )
        if entry.encrypted:
            raise encryption_zone_error(
                f"--input {item.name}",
                storage.url(path),
                _(
                    "Use --localization, because YARN decrypts files, or let the program read it "
                    "by itself with --input_path."
                ),
            )
        if item.shard and not entry.is_directory and len(tasks_sharing(spec, item)) > 1:
            raise UsageError(
                _(
                    "--input {item}: {url} is one file, and :shard divides the files of a "
                    "directory."
                ).format(item=item.name, url=storage.url(path)),
                _("Leave :shard out, or name a directory."),
            )
        found.append(replace(item, uri=path))
    # The agent fills %input_path% in with the first one.
    first = fetched_input(spec)
    return sorted(found, key=lambda item: item.name != first)


class TaskInput(NamedTuple):
    """Part of an input that one task fetches: number of files and bytes."""

    task: str
    name: str
    files: int
    size: int


def inputs_of_tasks(
    spec: JobSpec, storage: Storage, root: str, fetch: Sequence[NamedInput]
) -> list[TaskInput]:
    """Return the input files of each task, by the same rules as the agents.

    Raises
    ------
    UsageError
        If an input has too many files, or a name that no task could use.
    StorageError
        If the file system does not answer.
    """
    if not fetch:
        return []
    members = expected_members(spec.roles)
    tensorboards = {role.name for role in spec.roles if is_tensorboard(role)}
    store = storage.open_store(root)
    found: list[TaskInput] = []
    for one in fetch:
        try:
            files, single = list_input(store, one)
        except InputError as error:
            raise UsageError(str(error)) from None
        except StoreError as error:
            raise StorageError(
                _("--input {item} cannot be listed: {error}.").format(item=one.name, error=error)
            ) from None
        sharing = tasks_sharing(spec, one) if one.shard and spec.distributed else []
        parts_of_input: dict[int, list[list[SourceFile]]] = {1: [files], 0: [[]]}
        for member in members:
            if member.role in tensorboards:
                continue
            part = shard_of_task(member.task, sharing) if sharing else WHOLE
            if part.count not in parts_of_input:
                parts_of_input[part.count] = [files] if single else divide(files, part.count)
            fetched = parts_of_input[part.count][part.index]
            found.append(
                TaskInput(member.task, one.name, len(fetched), sum(f.size for f in fetched))
            )
    return found


def tasks_sharing(spec: JobSpec, one: NamedInput) -> list[str]:
    """Return the tasks that share the files of a ``:shard`` input, by the rules of the agents."""
    members = expected_members(spec.roles)
    return sharding_tasks(spec.framework, spec.env, members, one.shard_roles)


def _restore_from(spec: JobSpec, storage: Storage, root: str) -> str | None:
    if not spec.resume_from:
        return None
    if not layout.is_job_id(spec.resume_from):
        raise UsageError(
            _("{job!r} is not a job id.").format(job=spec.resume_from[:80]),
            _("One looks like digits-20261120-7f3a."),
        )
    path = layout.job_directory(root, spec.resume_from)
    if storage.stat(path) is None:
        raise UsageError(
            _("There is no job {job} to resume in {url}.").format(
                job=spec.resume_from, url=storage.url(root)
            ),
            _("`submarine list` lists all jobs."),
        )
    return path
