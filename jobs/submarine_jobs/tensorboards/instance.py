"""A TensorBoard over one or more jobs: its scratch directory, its files and its process.

One thread copies files; another requests the running jobs to upload more often. Methods block; the
server calls them in threads. Callers check permissions and idle time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.errors import SubmarineError
from submarine_jobs.tensorboards.process import Process, require_tensorboard
from submarine_jobs.tensorboards.scratch import Scratch
from submarine_runtime.storage import StoreError
from submarine_runtime.tensorboards import DiskQuota, DiskQuotaError, JobFiles
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job

#: Seconds between two updates from the job directories, and between two requests to the agents.
INTERVAL = 1.5
HINT_SECONDS = 20.0
#: Seconds between requests to an agent that does not listen yet.
HINT_RETRY_SECONDS = 3.0
#: Maximum rate of NameNode operations; with many tasks updates are less frequent.
MAX_OPERATION_RATE = 20.0
MAX_BYTES = 2 << 30
MAX_JOBS = 20
#: Maximum wait in seconds for the first update before TensorBoard is shown.
FIRST_UPDATE_SECONDS = 3.0


class _ClosedError(Exception):
    """The instance is being closed."""


class TensorBoardInstance:
    """A TensorBoard process over copies of the files of jobs.

    Parameters
    ----------
    state_dir
        Parent of the scratch directory.
    on_socket
        Listen on a private Unix socket for a proxy; else on loopback for a browser.
    port
        Port on loopback; 0: any free port.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        state_dir: Path,
        *,
        on_socket: bool,
        port: int = 0,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        require_tensorboard()
        self._scratch = Scratch(scratch_parent(state_dir))
        folder = self._scratch.path
        runs = folder / "runs"
        runs.mkdir(mode=0o700)
        several = _("{count} jobs").format(count=len(jobs))
        title = f"{jobs[0].name if len(jobs) == 1 else several} - TensorBoard"
        private = folder if on_socket else None
        self.process = Process(runs, folder / "tensorboard.log", private, title=title, port=port)
        quota = DiskQuota(str(runs), max_bytes)
        self._pairs = [(job, files_of(job, runs, quota, self._check)) for job in jobs]
        self._errors: dict[str, str] = {}
        self._closed, self._updated = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for run, name in (
                (self._fetch, "tensorboard-fetch"),
                (self._request_uploads, "tensorboard-hint"),
            )
        ]

    def start(self) -> None:
        """Start copying files and TensorBoard; restart TensorBoard if it has ended.

        Raises
        ------
        SubmarineError
            If TensorBoard is not installed or does not start.
        """
        with self._lock:
            if self._closed.is_set():
                raise SubmarineError(_("This TensorBoard has been shut down."), _("Open it again."))
            for thread in self._threads:
                if thread.ident is None:
                    thread.start()
            if not self.process.alive:
                self.process.start()
        self._updated.wait(FIRST_UPDATE_SECONDS)

    def notices(self) -> list[str]:
        """Return sentences on jobs without TensorBoard files and on failed updates."""
        empty = [
            (
                _("{job} has written no TensorBoard files.")
                if files.complete
                else _(
                    "{job} has written no TensorBoard files yet (a program writes them to "
                    "SUBMARINE_TENSORBOARD_DIR)."
                )
            ).format(job=job.id)
            for job, files in self._pairs
            if files.empty and job.id not in self._errors
        ]
        errors = [
            _("{job} is not up to date: {error}.").format(job=job, error=error)
            for job, error in self._errors.items()
        ]
        return errors + empty

    def close(self) -> None:
        """Stop TensorBoard and remove the copied files; may be called repeatedly."""
        self._closed.set()
        with self._lock:
            self.process.remove()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(1.0)  # a thread that waits for HDFS ends later
        self._scratch.remove()

    def _check(self) -> None:
        if self._closed.is_set():
            raise _ClosedError

    def _fetch(self) -> None:
        while not self._closed.is_set():
            began, operations = time.monotonic(), 0
            for job, files in self._pairs:
                try:
                    operations += files.update()
                    self._errors.pop(job.id, None)
                except _ClosedError:
                    return
                except (StoreError, OSError, DiskQuotaError, SubmarineError, ValueError) as exc:
                    self._errors[job.id] = " ".join(str(exc).split())[:300].rstrip(".")
            self._updated.set()
            pause = max(INTERVAL - (time.monotonic() - began), operations / MAX_OPERATION_RATE)
            self._closed.wait(max(0.2, pause))

    def _request_uploads(self) -> None:
        """Request frequent uploads from the agents, which stop them after a minute."""
        while not self._closed.is_set():
            requested = [
                self._request_upload(job) for job, files in self._pairs if not files.complete
            ]
            self._closed.wait(HINT_SECONDS if all(requested) else HINT_RETRY_SECONDS)

    def _request_upload(self, job: Job) -> bool:
        """Request frequent uploads of a job; return False if it does not listen yet."""
        if self._closed.is_set():
            return True
        try:
            agent = job.agent()
            if agent is not None:
                agent.look()
            return agent is not None
        except (SubmarineError, OSError, ValueError, KeyError, TypeError):
            return True  # unreachable: it uploads the files, but less often


def files_of(
    job: Job, folder: Path, quota: DiskQuota, check: Callable[[], None] = lambda: None
) -> JobFiles:
    """Return the local copies of a job's files, in a subdirectory named by its id."""
    store = job.directory.storage.open_store(job.directory.path)
    return JobFiles(store, "", str(folder / job.id), quota, lambda: job.chief, check)


def scratch_parent(state_dir: Path) -> Path:
    """Return the parent of all scratch directories of TensorBoards."""
    return state_dir / "tensorboard"
