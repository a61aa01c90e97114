"""URIs of ``--input``, ``--checkpoint_path`` and ``--resume`` as paths of the job's own store.

Agents reach one file system, the one that holds the job directory; a URI of another one is refused
here with a sentence. Copies nothing.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.placeholders import fetched_input
from submarine_jobs.spec import JobSpec
from submarine_jobs.storage.base import Storage
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import Input

_HDFS_PORT = 8020


def path_in(storage: Storage, uri: str) -> str | None:
    """The path of ``uri`` in ``storage``; None if it lies in another file system."""
    parts = urlsplit(uri)
    ours = urlsplit(storage.prefix)
    if not parts.scheme:
        if uri.startswith("/"):
            return posixpath.normpath(uri)
        return os.path.abspath(uri) if ours.scheme == "file" else None
    if parts.scheme != ours.scheme or not parts.path.startswith("/"):
        return None
    if parts.netloc and _authority(parts.netloc, parts.scheme) != _authority(
        ours.netloc, ours.scheme
    ):
        return None
    path = unquote(parts.path) if parts.scheme == "file" else parts.path
    return posixpath.normpath(path)


@dataclass(frozen=True)
class Reached:
    """What a job takes from the store; see ``launch.AgentConfig`` for each."""

    fetch: tuple[Input, ...] = ()
    checkpoint_path: str | None = None
    restore_from: str | None = None


NOTHING = Reached()


def reach(spec: JobSpec, storage: Storage, root: str) -> Reached:
    """Find everything that ``spec`` names in the store; ``root`` is the job root.

    Raises
    ------
    UsageError
        If an input or the job to resume lies elsewhere or is not there.
    StorageError
        If the file system does not answer.
    """
    return Reached(
        tuple(_inputs(spec, storage)),
        # In another file system it is the program's own affair: it gets the URI as it stands.
        path_in(storage, spec.checkpoint_path) if spec.checkpoint_path else None,
        _restore_from(spec, storage, root),
    )


def _inputs(spec: JobSpec, storage: Storage) -> list[Input]:
    found = []
    for item in spec.inputs:
        path = path_in(storage, item.uri)
        if path is None:
            raise UsageError(
                f"--input {item.name}={item.uri[:200]} does not lie in the file system of the job "
                f"directory, {storage.prefix}.",
                "Copy it there, or let the program read it by itself with --input_path.",
            )
        if storage.stat(path) is None:
            raise UsageError(
                f"--input {item.name}: there is no {storage.url(path)}.", "Check the address."
            )
        found.append(Input(item.name, path, item.shard))
    # The agent fills %input_path% in with the first one.
    first = fetched_input(spec)
    return sorted(found, key=lambda item: item.name != first)


def _restore_from(spec: JobSpec, storage: Storage, root: str) -> str | None:
    if not spec.resume_from:
        return None
    if not layout.is_job_id(spec.resume_from):
        raise UsageError(
            f"{spec.resume_from[:80]!r} is not a job id.", "One looks like digits-20261120-7f3a."
        )
    path = layout.job_directory(root, spec.resume_from)
    if storage.stat(path) is None:
        raise UsageError(
            f"There is no job {spec.resume_from} to resume in {storage.url(root)}.",
            "See `submarine list` for those that there are.",
        )
    return path


def _authority(netloc: str, scheme: str) -> str:
    return netloc if ":" in netloc or scheme != "hdfs" else f"{netloc}:{_HDFS_PORT}"
