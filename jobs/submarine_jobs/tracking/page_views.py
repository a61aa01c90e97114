"""Jobs that pages of the Jupyter server display: their newest view, for kernels on this machine.

While a page shows the live card of a job, the server extension observes the job and publishes its
view here, in the state directory. A kernel that displays the same job reads it and does not poll
the cluster or the job's port. The pages subscribe to jobs, so a view exists only if a page has the
front-end extension and shows the card now. A view that is not renewed is not valid: the server has
stopped, or has another state directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from submarine_jobs import model
from submarine_jobs.config import make_private
from submarine_jobs.errors import StorageError
from submarine_jobs.model import JobView
from submarine_jobs.storage import LocalStorage

#: Seconds between two renewals, and after which a view is not valid.
RENEW_SECONDS, VALID_SECONDS = 3.0, 15.0


class PageView:
    """The published view of one job.

    Parameters
    ----------
    state_dir
        The state directory of the profile.
    job_id
        A valid job id: it becomes a file name.
    """

    def __init__(self, state_dir: Path, job_id: str) -> None:
        self._path = state_dir / "pages" / f"{job_id}.json"
        self._job_id = job_id
        self._known = b""

    def publish(self, view: JobView) -> None:
        """Publish a view or renew the same one; nothing if the directory cannot be written."""
        content = {"record": view.record.to_json(), "pending": view.pending, "source": view.source}
        data = json.dumps(content).encode()
        with contextlib.suppress(OSError, StorageError):
            if data == self._known:
                os.utime(self._path)
                return
            make_private(self._path.parent)
            LocalStorage().publish(str(self._path), data)
            self._known = data

    def remove(self) -> None:
        """Remove the view, because no page shows the job any more."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    @property
    def valid(self) -> bool:
        """Whether a page shows the job now."""
        try:
            return abs(time.time() - self._path.stat().st_mtime) < VALID_SECONDS
        except OSError:
            return False

    def read(self) -> JobView | None:
        """Return the view if it has changed since the last call; without the end of the log."""
        try:
            data = self._path.read_bytes()
            if data == self._known:
                return None
            content = json.loads(data)
            record = model.read_record(content["record"], self._job_id)
            view = JobView(record, "", str(content["pending"]), str(content["source"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        self._known = data
        return view
