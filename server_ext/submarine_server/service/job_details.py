"""What a job's card says besides the record: whose it is, where it was launched, how to repeat it.

Read once a job from its directory and kept, since a spec never changes. All methods block: they
belong into ``Core.call``.
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
from submarine_jobs.model import hadoop_user
from submarine_jobs.options import command_of_spec
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.record import JobRecord
from submarine_server.base import ApiError
from submarine_server.views import About

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import JobSpec

#: Jobs that are remembered.
MAX_KEPT = 5000
#: Seconds until a job without TensorBoard files is looked at again.
LOOK_AGAIN = 5.0


@dataclass(frozen=True)
class _Kept:
    about: About
    #: None: nobody could tell.
    owner: str | None
    looked: float


class Abouts:
    """The answers so far.

    Parameters
    ----------
    root
        Directory that the server's file browser shows; None: it shows no files of this machine.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, job: Job, record: JobRecord) -> About:
        """What there is to say of ``job``, whose record at the moment is ``record``."""
        with self._lock:
            kept = self._kept.get(job.id)
        now = time.monotonic()
        if kept is None or (kept.owner is None and now - kept.looked > LOOK_AGAIN):
            kept = self._read_or_guess(job, record)
        about, old = kept.about, now - kept.looked > LOOK_AGAIN
        if kept.owner is not None and not about.has_tensorboard and old:
            about = replace(about, has_tensorboard=_has_board(job, record))
            kept = replace(kept, about=about, looked=time.monotonic())
        with self._lock:
            self._kept[job.id] = kept
            self._kept.move_to_end(job.id)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return replace(about, mine=kept.owner is not None and _is_mine(job, record, kept.owner))

    def origin(self, origin: Origin) -> Origin:
        """The same with the notebook's path as the file browser knows it; empty outside of it."""
        return Origin(_below(self._root, origin.notebook), origin.cell_id[:200])

    def _read_or_guess(self, job: Job, record: JobRecord) -> _Kept:
        """While the file system is away: what this machine has noted, and nobody's to act on."""
        try:
            return self._read(job)
        except ClusterError:
            return _Kept(self.guess(job, record), None, time.monotonic())

    def guess(self, job: Job, record: JobRecord) -> About:
        """What this machine can say of it without the file system."""
        with self._lock:
            kept = self._kept.get(job.id)
        if kept is not None and kept.owner is not None:
            return replace(kept.about, mine=_is_mine(job, record, kept.owner))
        noted = job.session.store.origins([job.id]).get(job.id, Origin())
        return About(self.origin(noted))

    def _read(self, job: Job) -> _Kept:
        spec = _spec_of(job)
        if spec is None:
            return _Kept(About(), _owner_of(job), 0.0)
        origin = Origin(spec.notebook or "", spec.cell_id or "")
        job.session.store.put_origin(job.id, origin)
        about = About(self.origin(origin), _command(spec))
        return _Kept(about, _owner_of(job), 0.0)


def demand_mine(job: Job, record: JobRecord, what: str) -> None:
    """Refuse an act on a job of somebody else.

    Raises
    ------
    ApiError
        403, in a sentence with the owner's name.
    """
    if _is_mine(job, record, _owner_of(job)):
        return
    raise ApiError(
        403,
        f"{job.id} is a job of {record.user[:80] or 'another user'}: only its owner may {what}.",
        "The command line asks instead: `submarine` with the same verb.",
    )


def _is_mine(job: Job, record: JobRecord, owner: str) -> bool:
    """Whether record and job directory both say so: a record alone may be written by anybody."""
    me = hadoop_user(job.session.profile.user)
    noted = noted_owner(job)
    if noted is not None and noted.foreign_to(me):
        return False
    return record.user in ("", me) and owner in ("", me)


def _owner_of(job: Job) -> str:
    """Owner of the job's directory; empty: this process's user, or the directory is gone."""
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
        return ""  # a spec that this release cannot say in words
    return words if len(words) <= 20_000 and words.isprintable() else ""


def _has_board(job: Job, record: JobRecord) -> bool:
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


def _below(root: Path | None, notebook: str) -> str:
    if root is None or not os.path.isabs(notebook) or not notebook.isprintable():
        return ""
    for top, path in (
        (os.path.abspath(root), os.path.normpath(notebook)),
        (os.path.realpath(root), os.path.realpath(notebook)),
    ):
        if os.path.commonpath([top, path]) == top and top != path:
            return Path(path).relative_to(top).as_posix()
    return ""
