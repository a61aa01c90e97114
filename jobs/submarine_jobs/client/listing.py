"""List and find jobs in the local index and in the job root.

Only the intent and the record of a job are read.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from submarine_jobs import model
from submarine_jobs.access import JobDirectory
from submarine_jobs.client.job import Job
from submarine_jobs.concurrency import call_with_timeout
from submarine_jobs.errors import (
    NAME_CLUSTER,
    ClusterError,
    JobNotFoundError,
    NoAccessError,
    NoAnswerError,
    NoClusterError,
    StorageError,
    UsageError,
)
from submarine_jobs.tracking import (
    IndexEntry,
    JobStore,
    Owner,
    Target,
    last_known_record,
    observe_all,
    record_from_backend,
    record_without_backend,
    record_without_directory,
    resolve_record,
    shipped_record,
    with_owner,
)
from submarine_runtime.protocol import JobRecord, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.backends import Backend
    from submarine_jobs.client.session import Session

#: Number of months of the job root that ``list`` reads.
MONTHS = 2
#: Timeout in seconds for listing the job root. The jobs of the cluster and of the local index are
#: shown without it.
PATIENCE = 5.0
#: The same for the search of one job, which cannot be answered without the job root.
SEARCH_PATIENCE = 20.0
#: Age in seconds after which a directory without files is not a submission in progress.
ABANDONED_AFTER = 3600.0


def list_jobs(
    session: Session,
    limit: int = 100,
    on_trouble: Callable[[ClusterError], None] | None = None,
) -> list[JobRecord]:
    """Return the records of this user's jobs, newest first.

    This makes one call to each backend with unfinished jobs, one listing per month of the job root,
    and reads each job that is not in the index (at most ``limit``). A file system that does not
    answer is called once. ``on_trouble`` receives the errors of file system and cluster.
    """
    trouble = discover(session, limit, PATIENCE, on_trouble)
    silent: dict[str, NoAnswerError] = {}
    if trouble is not None and on_trouble is not None:
        on_trouble(trouble)
    if isinstance(trouble, NoAnswerError):
        silent[session.backend().job_root()[0].prefix] = trouble
    known = session.store.newest(limit)
    targets = [target for row in known if (target := target_of(session, row)) is not None]
    try:
        observations = observe_all(targets)
    except ClusterError as error:
        trouble = error
        observations = {}
        if on_trouble is not None:
            on_trouble(error)
    records: dict[str, JobRecord] = {}
    for target in targets:
        row, seen = target.entry, observations.get(target.entry.job_id)
        mute = silent.get(target.directory.storage.prefix)
        try:
            if trouble is not None and seen is None:
                records[row.job_id] = (
                    row.record if row.final and row.record else (last_known_record(row, trouble))
                )
            elif mute is not None and seen is not None:
                records[row.job_id] = record_without_directory(target, seen, session.store, mute)
            else:
                records[row.job_id] = resolve_record(target, seen, session.store)
        except (ClusterError, JobNotFoundError, FileNotFoundError) as error:
            wrapped = error if isinstance(error, ClusterError) else ClusterError(str(error))
            if isinstance(error, NoAnswerError):
                silent[target.directory.storage.prefix] = (
                    error  # do not wait again for the same timeout
                )
            elif isinstance(error, ClusterError) and not isinstance(error, StorageError):
                trouble = error
            records[row.job_id] = record_from_backend(row, seen, wrapped)
    return [records.get(row.job_id) or record_without_backend(row, session.store) for row in known]


def list_jobs_of(session: Session, user: str, limit: int = 100) -> list[JobRecord]:
    """Return the records of another user's jobs that this user may read, newest first.

    The cluster names the jobs, because a job root is private. This reads each job that is not in
    the index, at most ``limit``, and makes one call to the cluster for their states.

    Raises
    ------
    ClusterError
        If the cluster does not answer.
    UsageError
        If the backend has only jobs of this user, or the name is invalid.
    """
    backend = session.backend()
    ids = [job_id for job_id in backend.jobs_of(user) if layout.is_job_id(job_id)]
    targets = []
    for job_id in ids[:limit]:
        with contextlib.suppress(NoAccessError, model.InvalidRecordError):  # not shared
            row = session.store.get(job_id) or _from_job_root(session, job_id, user)
            if row is not None and (target := target_of(session, row)) is not None:
                targets.append(target)
    observations = observe_all(targets)
    records = []
    for target in targets:
        seen = observations.get(target.entry.job_id)
        with contextlib.suppress(NoAccessError, FileNotFoundError):
            record = resolve_record(target, seen, session.store)
            records.append(with_owner(record, session.store.owner(target.entry.job_id)))
    return records


def find_job(session: Session, text: str) -> Job:
    """Find one job by an id, the beginning of one, a name, ``last``, ``USER/ID`` or its URL.

    Raises
    ------
    JobNotFoundError
        If there is none.
    ClusterError
        If the search fails.
    UsageError
        If ``text`` is the beginning of more than one id.
    """
    row = _row(session, text)
    if row is None:
        if session.profile.backend is None:
            raise JobNotFoundError(
                _(
                    "There is no job {text!r} in the local index, and no cluster is configured."
                ).format(text=text[:80]),
                _("{advice}, or choose one with --profile.").format(advice=_(NAME_CLUSTER)),
            )
        raise JobNotFoundError(
            _("There is no job {text!r} here or in the job root.").format(text=text[:80]),
            _("`submarine list` lists all jobs."),
        )
    target = target_of(session, row)
    if target is None:
        raise JobNotFoundError(
            _(
                "Job {job} belongs to the backend {backend!r} of the profile {profile!r}, which "
                "is not configured now."
            ).format(job=row.job_id, backend=row.backend, profile=row.profile),
            f"{_(NAME_CLUSTER)}."
            if session.profile.name == row.profile
            else _("Choose it with --profile {profile}.").format(profile=row.profile),
        )
    return Job(session, row.job_id, row.name, target.backend, target.directory, row.handle)


def _row(session: Session, text: str) -> IndexEntry | None:
    store, user = session.store, session.user
    if not text:
        return None  # Every id begins with it: `cancel "$JOB"` with an empty variable.
    if text == "last":
        if notebook := session.notebook:
            return _last_of(session, notebook)
        return store.newest_own(user)
    if layout.is_job_id(text):
        return store.get(text) or _from_job_root(session, text)
    if "/" in text:
        return _from_path(session, text)
    candidates = _candidates(store, text, user)
    if not candidates:
        trouble = discover(session, 200, SEARCH_PATIENCE)
        candidates = _candidates(store, text, user)
        if trouble is not None and not candidates:
            raise trouble  # the user may have such a job in the job root
        candidates = candidates or _candidates(store, text, None)
    if len(candidates) > 1:
        names = ", ".join(row.job_id for row in candidates[:5])
        raise UsageError(
            _("{text!r} is the beginning of several job ids: {names}.").format(
                text=text, names=names
            ),
            _("Give more."),
        )
    return candidates[0] if candidates else None


def _candidates(store: JobStore, text: str, user: str | None) -> list[IndexEntry]:
    """Return the newest job of that name, or else the jobs whose id begins with ``text``."""
    named = store.named(text, user)
    return [named] if named is not None else store.beginning_with(text, user)


def _last_of(session: Session, notebook: Sequence[str]) -> IndexEntry:
    """Return the newest job of this notebook, which is the meaning of ``last``."""
    found = session.store.newest_of(notebook)
    if found is None:
        raise JobNotFoundError(
            _("There is no job `last`: this notebook has not submitted a job from this machine."),
            _("`list` shows the jobs of other notebooks; name one of them by its id."),
        )
    return found


def target_of(session: Session, row: IndexEntry) -> Target | None:
    """Return directory and backend of a job; None if the backend is not configured."""
    try:
        backend = session.backend(row.backend)
        storage, _root = backend.job_root()
    except (NoClusterError, UsageError):
        return None
    path = storage.path_of(row.job_dir)
    if path is None:
        return None
    return Target(row, JobDirectory(storage, path), backend)


def discover(
    session: Session,
    limit: int,
    patience: float,
    on_invalid: Callable[[ClusterError], None] | None = None,
) -> ClusterError | None:
    """Import jobs from the job root into the index; return the error, if any.

    Parameters
    ----------
    patience
        Timeout in seconds.
    on_invalid
        Receives the error of each job with an invalid record; such a job is not imported.
    """
    try:
        found = call_with_timeout(patience, lambda: unknown_jobs(session, newest_months()))
        for directory, changed in sorted(found, key=lambda item: item[1], reverse=True)[:limit]:
            try:
                if import_job(session, session.backend(), directory) is None:
                    remove_abandoned(directory, changed)
            except model.InvalidRecordError as error:
                if on_invalid is not None:
                    on_invalid(error)
    except NoClusterError:
        return None
    except TimeoutError:
        storage, _root = session.backend().job_root()
        return NoAnswerError(
            _(
                "The job directories at {prefix} cannot be read: no answer within {patience:g} s."
            ).format(prefix=storage.prefix, patience=patience),
            _("Run `submarine doctor` for details."),
        )
    except ClusterError as error:
        return error
    return None


def unknown_jobs(session: Session, months: Iterable[str]) -> list[tuple[JobDirectory, float]]:
    """Return the job directories of these months that are not in the index, with their mtimes.

    This makes one listing per month and reads no file.
    """
    storage, root = session.backend().job_root()
    known = session.store.ids()
    found = []
    for month in months:
        try:
            entries = storage.list_directory(f"{root}/{month}")
        except FileNotFoundError:
            continue
        found += [
            (JobDirectory(storage, f"{root}/{month}/{entry.name}", entry.owner), entry.modified)
            for entry in entries
            if layout.is_job_id(entry.name) and entry.name not in known
        ]
    return found


def all_months(session: Session) -> list[str]:
    """Return the months of the job root, newest first."""
    storage, root = session.backend().job_root()
    try:
        names = [entry.name for entry in storage.list_directory(root)]
    except FileNotFoundError:
        return []
    months = [name for name in names if len(name) == 6 and name.isascii() and name.isdecimal()]
    return sorted(months, reverse=True)


def _from_job_root(session: Session, job_id: str, user: str | None = None) -> IndexEntry | None:
    """Import a job from the job root, that of another user if one is named."""
    backend = session.backend()
    storage, root = backend.job_root() if user is None else backend.job_root_of(user)
    directory = JobDirectory(storage, layout.job_directory(root, job_id))
    return import_job(session, backend, directory)


def _from_path(session: Session, text: str) -> IndexEntry | None:
    """Import the job of ``USER/ID`` or of the URL of a job directory."""
    parts = text.rstrip("/").split("/")
    job_id = parts[-1]
    if not layout.is_job_id(job_id):
        return None
    backend = session.backend()
    if len(parts) == 2:
        storage, root = backend.job_root_of(parts[0])
        path: str | None = layout.job_directory(root, job_id)
    else:
        storage, _root = backend.job_root()
        path = storage.path_of(text)
    if path is None:
        return None
    directory = JobDirectory(storage, path)
    known = session.store.get(job_id)
    if known is not None and known.job_dir == directory.url:
        return known
    try:
        return import_job(session, backend, directory)
    except NoAccessError as error:
        raise NoAccessError(
            _("{url} is not shared with you: {error}").format(
                url=directory.url, error=error.message
            ),
            _("The owner shares a new job with --share view:{user}.").format(user=session.user),
        ) from error


def import_job(session: Session, backend: Backend, directory: JobDirectory) -> IndexEntry | None:
    """Read a job into the index; return None if the directory does not hold a job yet.

    Raises
    ------
    InvalidRecordError
        If the directory holds a record that cannot be read.
    ClusterError
        If the file system does not respond.
    """
    try:
        record = directory.record() or shipped_record(directory)
    except model.InvalidRecordError:
        raise
    except (JobNotFoundError, ValueError, KeyError, TypeError):
        return None
    if not directory.path.endswith(f"/{record.job_id}"):
        return None
    owner = directory.owner
    if owner is None:
        entry = directory.storage.stat(directory.path)
        owner = entry.owner if entry is not None else ""
    noted = Owner(owner, record.user)
    session.store.put_owner(record.job_id, noted)
    record = with_owner(record, noted)
    handle = directory.read_json(layout.APPLICATION)
    row = IndexEntry(
        record.job_id,
        record.name,
        backend.name,
        session.profile.name,
        directory.url,
        record.created or time.time(),
        record.state,
        handle if isinstance(handle, dict) else None,
        record,
    )
    session.store.add(row)
    return row


def remove_abandoned(directory: JobDirectory, changed: float) -> None:
    """Remove the directory of a client that was killed before it published the intent.

    The directory is removed if it is empty and has not changed for an hour.
    """
    if time.time() - changed < ABANDONED_AFTER:
        return
    with contextlib.suppress(StorageError, FileNotFoundError):
        if not directory.storage.list_directory(directory.path):
            directory.storage.delete(directory.path, recursive=True)


def newest_months() -> list[str]:
    """Return the newest ``MONTHS`` months."""
    now = time.gmtime()
    months = []
    year, month = now.tm_year, now.tm_mon
    for _month in range(MONTHS):
        months.append(f"{year:04d}{month:02d}")
        year, month = (year - 1, 12) if month == 1 else (year, month - 1)
    return months
