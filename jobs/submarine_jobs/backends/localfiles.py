"""What a local job finds in its scratch directory, as YARN would have localised it.

A job of one task::

    agent.json secret.json bundle.zip values.zip runtime.zip program/<localised>

A distributed one: what its coordinator needs, and a directory of orders a role, from which the
coordinator makes one directory a task::

    coordinator.json secret.json runtime.zip
    <role>/agent.json secret.json bundle.zip values.zip runtime.zip program/<localised>

Starts nothing (``localprocess``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from submarine_jobs.backends.base import Submission
from submarine_jobs.localization import brought, copy_of
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

RUNTIME = "runtime.zip"
_LISTEN = "127.0.0.1"


def localise(submission: Submission, scratch: Path) -> None:
    """Fill ``scratch`` for ``submission``.

    Raises
    ------
    StorageError
        If the job directory cannot be read.
    """
    if submission.coordinator is None:
        _task_files(submission, scratch, submission.agent)
        return
    orders = replace(submission.coordinator, backend="local", listen=_LISTEN)
    write_json(scratch / layout.COORDINATOR, orders.to_json())
    for role in orders.roles:
        directory = scratch / role.service
        directory.mkdir(mode=0o700, exist_ok=True)
        _task_files(submission, directory, submission.agents[role.name])
    first = scratch / orders.roles[0].service
    for name in (layout.SECRET, RUNTIME):
        (scratch / name).unlink(missing_ok=True)
        os.link(first / name, scratch / name)


def _task_files(submission: Submission, directory: Path, agent: AgentConfig) -> None:
    storage, job_dir = submission.storage, submission.job_dir
    mine = replace(agent, backend="local", listen=_LISTEN)
    write_json(directory / layout.AGENT, mine.to_json())
    for name in (layout.SECRET, layout.BUNDLE, layout.VALUES):
        if storage.stat(f"{job_dir}/{name}") is not None:
            storage.download(f"{job_dir}/{name}", directory / name)
            (directory / name).chmod(0o600)
    storage.download(submission.runtime_zip, directory / RUNTIME)
    for item in brought(submission.spec):
        path, archived = copy_of(storage, job_dir, item)
        target = directory / "program" / item.target
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if archived:
            shutil.unpack_archive(path, target, "zip" if path.endswith(".jar") else None)
        else:
            storage.download(path, target)
        if item.mode != "rw":
            _protect(target)


def _protect(target: Path) -> None:
    """Make localised files read-only, as YARN does; directories stay writable, as there."""
    for path in [target] if target.is_file() else target.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Put a JSON file of mode 0600 in place by rename."""
    temporary = path.with_name(f".tmp-{path.name}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    temporary.rename(path)
