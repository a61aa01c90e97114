"""Close a job that ended without publishing its record.

The agent or coordinator of a job normally publishes ``record.json``. If the container or the
application was killed, or the node was lost, the first client that detects this writes the record
by exclusive create; every other client reads that record.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import suppress

from submarine_jobs import outputs
from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Observation
from submarine_jobs.errors import JobNotFoundError, NoAccessError, NoRoomError, StorageError
from submarine_jobs.logs import shipped_lengths
from submarine_jobs.model import JobSpec
from submarine_jobs.tracking.event_folding import base_record, fold
from submarine_runtime.protocol import (
    EndReason,
    JobRecord,
    Phase,
    State,
    TaskRecord,
    cancel_sentence,
    layout,
)
from submarine_runtime.translation import _

#: End reasons that the job itself has not reported.
_SILENT = frozenset(
    (
        EndReason.AGENT_LOST,
        EndReason.COORDINATOR_LOST,
        EndReason.MASTER_LOST,
        EndReason.JOB_DIRECTORY_FULL,
    )
)


def close(directory: JobDirectory, record: JobRecord) -> JobRecord:
    """Publish ``record`` unless the job has a record; return the published one.

    Files with secrets are deleted, because the job that would delete them has ended.
    """
    for name in layout.DELETED_AT_END:
        with suppress(StorageError):  # The record may still be published.
            directory.storage.delete(directory.file(name))
    if directory.publish_json_exclusive(layout.RECORD, record.to_json()):
        return record
    return directory.record() or record


def shipped_record(directory: JobDirectory) -> JobRecord:
    """Return the record of an unfinished job, built from its intent, events and spec.

    Raises
    ------
    JobNotFoundError
        If the directory holds no job.
    """
    intent = directory.read_json(layout.INTENT)
    if not isinstance(intent, dict):
        raise JobNotFoundError(_("There is no job in {url}.").format(url=directory.url))
    record = fold(base_record(intent, directory.url), directory.events())
    try:
        spec = directory.spec()
    except (FileNotFoundError, ValueError):
        return record
    record.queue = record.queue or spec.queue
    return record


def close_orphan(directory: JobDirectory, observation: Observation) -> JobRecord:
    """Close a job that has ended without a record, according to its backend."""
    record = shipped_record(directory)
    spec = _spec(directory)
    several = spec is not None and spec.distributed
    reason, detail = _end_reason(directory, observation, several=several)
    record.reason, record.state = reason, reason.meaning.state
    record.detail = detail or reason.meaning.sentence
    record.finished = observation.finished or time.time()
    record.links = dict(observation.links)
    record.application_id = (observation.handle or {}).get("application_id")
    record.written_by = "closer"
    record.resources.setdefault("used", {}).update(observation.used)
    if spec is not None and several:
        _complete_tasks(record, spec)
    _close_tasks(record, observation, several=several)
    _close_phases(record)
    record.logs = shipped_lengths(directory)
    if record.state is not State.SUCCEEDED and record.phases:
        record.missing.append(_("The end of the log since the last shipment may be missing."))
    if spec is not None and spec.published:
        outputs.settle_outputs(directory, spec, record.job_id)
    try:
        return close(directory, record)
    except NoAccessError:  # A job of another user, whose client publishes the record.
        return record
    except NoRoomError as full:
        return _unpublished(record, full)


def close_unsubmitted(directory: JobDirectory, observation: Observation) -> JobRecord | None:
    """Close a job that no container has claimed, and prevent every container from running it.

    The client first takes the claim by exclusive create, so that either the client or a container
    holds it. Later attempts of an application master have their own claims: these are checked as
    well, and such an attempt checks whether the first claim belongs to a client.

    Returns
    -------
    JobRecord or None
        None if a container holds a claim: the job was submitted, and no record is written.

    Raises
    ------
    JobNotFoundError
        If the directory holds no job.
    StorageError
        If the claim cannot be taken.
    """
    taken = {
        layout.CLOSER: True,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "nonce": secrets.token_hex(16),
        "time": time.time(),
    }
    if not directory.publish_json_exclusive(layout.CLAIM, taken):
        claim = directory.read_json(layout.CLAIM)
        if not (isinstance(claim, dict) and claim.get(layout.CLOSER)):
            return None
    entries = directory.storage.list_directory(directory.path)
    if any(layout.is_claim(entry.name) and entry.name != layout.CLAIM for entry in entries):
        return None
    return close_orphan(directory, observation)


def _unpublished(record: JobRecord, full: NoRoomError) -> JobRecord:
    """Return the record of an ended job whose directory is full, so that it cannot be published.

    A full job directory also explains why the job has not published a record itself.
    """
    if record.reason in _SILENT:
        record.reason = EndReason.JOB_DIRECTORY_FULL
        record.state = record.reason.meaning.state
        record.detail = full.message
    record.missing.append(
        _("The record is stored only on this machine: the job directory is full.")
    )
    return record


def _spec(directory: JobDirectory) -> JobSpec | None:
    try:
        return directory.spec()
    except (FileNotFoundError, ValueError):
        return None


def _end_reason(
    directory: JobDirectory, observation: Observation, *, several: bool
) -> tuple[EndReason, str]:
    cancel = directory.read_json(layout.CANCEL)
    if isinstance(cancel, dict):
        return EndReason.CANCELLED, cancel_sentence(cancel)
    # The agent publishes the record of a single-task job, the coordinator that of any other job.
    writer = EndReason.COORDINATOR_LOST if several else EndReason.AGENT_LOST
    reason = observation.reason or writer
    if reason is EndReason.SUCCEEDED:
        # YARN reports success, but there is no record: the last write was lost.
        return writer, _("The application ended without leaving a result.")
    if several and reason is EndReason.AGENT_LOST:
        reason = writer
    attempts = _attempts(directory) if reason is EndReason.MASTER_LOST else 0
    if attempts > 1:
        return reason, _("The application master died {attempts} times. {detail}").format(
            attempts=attempts, detail=observation.detail
        ).strip()
    return reason, observation.detail


def _attempts(directory: JobDirectory) -> int:
    """Return the number of the newest application attempt with a claim; 0 if there is none."""
    try:
        entries = directory.storage.list_directory(directory.path)
    except FileNotFoundError:
        return 0
    return layout.newest_claim(entry.name for entry in entries)


def _complete_tasks(record: JobRecord, spec: JobSpec) -> None:
    """Add the requested tasks for which no event was shipped."""
    known = {task.task for task in record.tasks}
    for role in spec.roles:
        for index in range(role.instances):
            name = f"{role.name}:{index}"
            if name not in known:
                record.tasks.append(TaskRecord(name, role.name, index, epoch=record.epoch))


def _close_tasks(record: JobRecord, observation: Observation, *, several: bool) -> None:
    if not record.tasks:
        record.tasks = [TaskRecord("worker:0", "worker", 0)]
    for task in record.tasks:
        if not task.state.ended:
            task.state = record.state
        task.finished = task.finished or record.finished
        if not several:  # for several tasks, the backend reports the container of the master
            task.host = task.host or observation.host
            task.container_id = task.container_id or observation.container_id


def _close_phases(record: JobRecord) -> None:
    open_phases: list[Phase] = [phase for phase in record.phases if phase.end is None]
    for phase in open_phases:
        phase.end = record.finished
