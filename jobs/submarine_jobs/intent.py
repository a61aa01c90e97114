"""What was meant to run, published by an exclusive create: from then on the job's id is taken.

Whoever finds a job directory without a record learns from it whose job it is (``folding``). Holds
no secret, and does not say whether a backend has ever heard of the job.
"""

from __future__ import annotations

import os
import socket
import uuid

from submarine_jobs.directory import JobDirectory
from submarine_jobs.errors import StorageError
from submarine_jobs.profile import Profile, hadoop_user
from submarine_jobs.spec import JobSpec
from submarine_runtime.protocol import layout


def publish_intent(
    spec: JobSpec,
    profile: Profile,
    directory: JobDirectory,
    *,
    job_id: str,
    backend: str,
    created: float,
) -> str:
    """Publish the intent of one submit.

    Parameters
    ----------
    backend
        The name of the backend that the job is going to be handed to.
    created
        When the submit began.

    Returns
    -------
    str
        What tells this submit from any other; the job's agents are told it.

    Raises
    ------
    StorageError
        If the directory has an intent already.
    """
    intent = uuid.uuid4().hex
    content = {
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
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    if not directory.publish_json_exclusive(layout.INTENT, content):
        raise StorageError(f"The job directory {directory.url} is somebody else's.")
    return intent
