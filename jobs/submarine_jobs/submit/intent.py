"""What was meant to run, published by an exclusive create: from then on the job's id is taken.

It is the first file of a job directory, and the client publishes it again every few seconds until
the backend has accepted or refused the job. A directory without a record tells by it which job it
is (``folding``), and whether its submission is still in progress. Holds no secret.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.errors import ClusterError, StorageError
from submarine_jobs.model import JobSpec, Profile, hadoop_user
from submarine_runtime.protocol import layout

#: Seconds between two publications of an intent while its submission is in progress; a third of
#: the least grace that ``submit_grace`` allows.
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
    backend: str,
    created: float,
    environments: Mapping[str, str],
) -> Iterator[str]:
    """Make the job directory, publish the intent in it, and renew it inside the ``with`` block.

    Other clients see by the age of the intent whether a submission is still in progress.

    Parameters
    ----------
    backend
        The name of the backend that the job is going to be handed to.
    created
        When the submit began.
    environments
        Role -> URL of the Python environment that it brings along.

    Yields
    ------
    str
        What tells this submit from any other; the job's agents are told it.

    Raises
    ------
    StorageError
        If the directory has an intent already.
    """
    intent = uuid.uuid4().hex
    content: Mapping[str, Any] = {
        "version": 1,
        "job_id": job_id,
        "intent": intent,
        "name": spec.name,
        "user": hadoop_user(profile.user),
        "backend": backend,
        "profile": profile.name,
        "created": created,
        "workflow": spec.workflow,
        "workflow_run": spec.workflow_run,
        "workflow_node": spec.workflow_node,
        "environments": sorted({url.rpartition("/")[2] for url in environments.values()}),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    directory.storage.make_directory(directory.path)
    if not directory.publish_json_exclusive(layout.INTENT, content):
        raise StorageError(f"The job directory {directory.url} belongs to another job.")
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW_EVERY):
            with suppress(ClusterError, OSError):  # a file system that is away ages nothing
                directory.publish_json(layout.INTENT, content)

    renewing = threading.Thread(target=renew, daemon=True, name="submarine-intent")
    renewing.start()
    try:
        yield intent
    finally:
        over.set()
        renewing.join(_LAST_RENEWAL)
