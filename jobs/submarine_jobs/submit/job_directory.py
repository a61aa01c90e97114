"""Create the directory of a new job: choose the id, publish the intent, upload the files.

A job id is readable, unique, and safe as a path, a host name and a YARN tag. The intent describes
the job and is the first file of its directory, published by exclusive create. The client publishes
it again every few seconds until the backend has accepted or refused the job. It identifies a job
without a record, and its age tells whether the submission is still in progress. It holds no secret.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.environments import environment_names
from submarine_jobs.errors import ClusterError, StorageError
from submarine_jobs.model import JobSpec, PackedEnvironment, Profile, Sharing
from submarine_jobs.storage import PRIVATE_FILE, Storage, share_directory
from submarine_jobs.submit.runtime_zip import data_zip, forget_runtime_zip, runtime_zip
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _

_UNSAFE = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 40


def slug(name: str) -> str:
    """Return ``name`` as lower-case letters, digits and single dashes; ``job`` if none are left."""
    return _UNSAFE.sub("-", name.lower()).strip("-")[:MAX_SLUG].strip("-") or "job"


def new_job_id(name: str, now: float | None = None) -> str:
    """Return a new id such as ``digits-20261120-7f3a``: name, date in UTC, random suffix."""
    day = time.strftime("%Y%m%d", time.gmtime(now))
    return f"{slug(name)}-{day}-{secrets.token_hex(2)}"


def free_job_id(storage: Storage, root: str, name: str, now: float) -> str:
    """Return a new id that has no job directory below ``root``."""
    for _attempt in range(20):
        job_id = new_job_id(name, now)
        if storage.stat(layout.job_directory(root, job_id)) is None:
            return job_id
    raise StorageError(
        _("No free job id for the name {name!r} under {root}.").format(name=name, root=root)
    )


#: Seconds between two publications of an intent during a submission: a third of the minimum of
#: the setting ``submit_grace``.
RENEW_EVERY = 2.0
#: Seconds to wait for a publication in progress when the submission ends.
_LAST_RENEWAL = 5.0


@contextmanager
def published_intent(
    spec: JobSpec,
    profile: Profile,
    directory: JobDirectory,
    *,
    job_id: str,
    user: str,
    backend: str,
    created: float,
    environments: Mapping[str, PackedEnvironment],
) -> Iterator[str]:
    """Create the job directory, publish the intent, and renew it inside the ``with`` block.

    Other clients use the age of the intent to tell whether the submission is in progress.

    Parameters
    ----------
    user
        The submitting user on the cluster.
    backend
        The name of the backend of the job.
    created
        When the submission began.
    environments
        Role -> its packed Python environment.

    Yields
    ------
    str
        Identifier of this submission; part of the agents' configuration.

    Raises
    ------
    StorageError
        If the directory already has an intent.
    """
    intent = uuid.uuid4().hex
    content: Mapping[str, Any] = {
        "version": 1,
        "job_id": job_id,
        "intent": intent,
        "name": spec.name,
        "user": user,
        "backend": backend,
        "profile": profile.name,
        "created": created,
        "workflow": spec.workflow,
        "workflow_run": spec.workflow_run,
        "workflow_node": spec.workflow_node,
        "environments": environment_names(environments),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    directory.storage.make_directory(directory.path)
    if directory.shared:
        share_directory(directory.storage, directory.path, Sharing.of(spec.share))
    if not directory.publish_json_exclusive(layout.INTENT, content):
        raise StorageError(
            _("The job directory {url} belongs to another job.").format(url=directory.url)
        )
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_EVERY):
            with suppress(
                ClusterError, OSError
            ):  # the age does not grow while the file system is unreachable
                directory.publish_json(layout.INTENT, content)

    renewing = threading.Thread(target=renew, daemon=True, name="submarine-intent")
    renewing.start()
    try:
        yield intent
    finally:
        ended.set()
        renewing.join(_LAST_RENEWAL)


MAX_UPLOADS = 4


def upload(
    directory: JobDirectory,
    runtime_path: str,
    files: Mapping[str, bytes | None],
    data_path: str | None = None,
) -> None:
    """Publish ``files`` (name -> content; None is left out) in the job directory.

    Parameters
    ----------
    runtime_path
        Path of the runtime's zip, which is uploaded once for all jobs of a job root.
    data_path
        The same of ``submarine_data``, for a program that uses it.
    """
    storage = directory.storage

    def publish(item: tuple[str, bytes]) -> None:
        name, data = item
        mode = PRIVATE_FILE if name in layout.PRIVATE_FILES else directory.mode
        storage.publish(directory.file(name), data, mode=mode)

    def publish_runtime() -> None:
        if storage.stat(runtime_path) is None:
            storage.publish(runtime_path, runtime_zip().data)

    def publish_data(path: str) -> None:
        if storage.stat(path) is None:
            storage.publish(path, data_zip().data)

    present = [(name, data) for name, data in files.items() if data is not None]
    with ThreadPoolExecutor(MAX_UPLOADS, "submarine-upload") as pool:
        pending = [pool.submit(publish, item) for item in present]
        pending.append(pool.submit(publish_runtime))
        if data_path is not None:
            pending.append(pool.submit(publish_data, data_path))
        for upload_done in pending:
            upload_done.result()
    forget_runtime_zip()
