"""Details of jobs that are not in the record: owner, origin, command, TensorBoard files.

The details are read once from the job directory and cached, since a spec never changes. All methods
block: call them through ``JobService.call``.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.client import noted_owner
from submarine_jobs.errors import ClusterError, StorageError, UsageError
from submarine_jobs.options import command_of_spec
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol import JobRecord, layout
from submarine_server.views import JobDetails

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import JobSpec

#: Maximum number of cached jobs.
MAX_JOBS = 5000
#: Seconds between checks for TensorBoard files.
TENSORBOARD_INTERVAL = 5.0


@dataclass(frozen=True)
class _CachedDetails:
    details: JobDetails
    #: Owner of the job directory; None if it could not be read.
    owner: str | None
    checked: float


class JobDetailsCache:
    """Cache of job details.

    Parameters
    ----------
    root
        Root directory of the server's file browser; None if it does not show local files.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._cached: OrderedDict[str, _CachedDetails] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, job: Job, record: JobRecord) -> JobDetails:
        """Return the details of ``job``; ``record`` is its current record."""
        with self._lock:
            cached = self._cached.get(job.id)
        now = time.monotonic()
        if cached is None or (cached.owner is None and now - cached.checked > TENSORBOARD_INTERVAL):
            cached = self._read_or_get_local(job, record)
        details, old = cached.details, now - cached.checked > TENSORBOARD_INTERVAL
        if cached.owner is not None and not details.has_tensorboard and old:
            details = replace(details, has_tensorboard=_has_tensorboard(job, record))
            cached = replace(cached, details=details, checked=time.monotonic())
        with self._lock:
            self._cached[job.id] = cached
            self._cached.move_to_end(job.id)
            while len(self._cached) > MAX_JOBS:
                self._cached.popitem(last=False)
        return replace(
            details, mine=cached.owner is not None and _is_owner(job, record, cached.owner)
        )

    def visible_origin(self, origin: Origin) -> Origin:
        """Return the origin with a path of the file browser, empty for other notebooks."""
        return Origin(_relative_path(self._root, origin.notebook), origin.cell_id[:200])

    def _read_or_get_local(self, job: Job, record: JobRecord) -> _CachedDetails:
        """Without the file system: the local details, without an owner."""
        try:
            return self._read(job)
        except ClusterError:
            return _CachedDetails(self.get_local(job, record), None, time.monotonic())

    def get_local(self, job: Job, record: JobRecord) -> JobDetails:
        """Return the details that are known without the file system."""
        with self._lock:
            cached = self._cached.get(job.id)
        if cached is not None and cached.owner is not None:
            return replace(cached.details, mine=_is_owner(job, record, cached.owner))
        noted = job.session.store.origins([job.id]).get(job.id, Origin())
        return JobDetails(self.visible_origin(noted))

    def _read(self, job: Job) -> _CachedDetails:
        spec = _spec_of(job)
        if spec is None:
            return _CachedDetails(JobDetails(), _owner_of(job), 0.0)
        origin = Origin(spec.notebook or "", spec.cell_id or "")
        job.session.store.put_origin(job.id, origin)
        details = JobDetails(self.visible_origin(origin), _command(spec))
        return _CachedDetails(details, _owner_of(job), 0.0)


def owns(job: Job, record: JobRecord) -> bool:
    """Return whether the job belongs to this process's user; blocks."""
    return _is_owner(job, record, _owner_of(job))


def _is_owner(job: Job, record: JobRecord, owner: str) -> bool:
    """Check the record and the directory: other users may have written the record."""
    me = job.session.user
    noted = noted_owner(job)
    if noted is not None and noted.foreign_to(me):
        return False
    return record.user in ("", me) and owner in ("", me)


def _owner_of(job: Job) -> str:
    """Owner of the job directory; empty for this process's user or a missing directory."""
    found = job.directory.storage.stat(job.directory.path)
    return found.owner if found is not None else ""


def _spec_of(job: Job) -> JobSpec | None:
    try:
        return job.directory.spec()
    except StorageError:
        raise
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _command(spec: JobSpec) -> str:
    try:
        words = command_of_spec(spec)
    except (UsageError, ValueError, TypeError, AttributeError):
        return ""  # the spec of a newer or older release
    return words if len(words) <= 20_000 and words.isprintable() else ""


def _has_tensorboard(job: Job, record: JobRecord) -> bool:
    part = f"{layout.TENSORBOARD}/"
    if any(output.path.startswith(part) for output in record.outputs):
        return True
    try:
        storage, directory = job.directory.storage, job.directory
        return any(
            storage.stat(directory.file(name)) is not None
            for name in (layout.GROWING, layout.TENSORBOARD)
        )
    except ClusterError:
        return False


def _relative_path(root: Path | None, notebook: str) -> str:
    if root is None or not os.path.isabs(notebook) or not notebook.isprintable():
        return ""
    for top, path in (
        (os.path.abspath(root), os.path.normpath(notebook)),
        (os.path.realpath(root), os.path.realpath(notebook)),
    ):
        if os.path.commonpath([top, path]) == top and top != path:
            return Path(path).relative_to(top).as_posix()
    return ""
