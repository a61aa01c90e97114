"""A TensorBoard over one or several jobs: scratch, files kept up to date, process.

Two threads: one fetches, one asks the running jobs to ship more often while this exists. Who may
look and for how long is the caller's. Blocking; the server calls it from its threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.errors import SubmarineError
from submarine_jobs.tensorboards.fetching import JobFiles, NoRoomError, Room
from submarine_jobs.tensorboards.process import Process, require_tensorboard
from submarine_jobs.tensorboards.scratch import Scratch
from submarine_runtime.storage import StoreError

if TYPE_CHECKING:
    from submarine_jobs.client import Job

#: Seconds between two looks at the job directories, and between two words to the agents.
INTERVAL = 1.5
HINT_SECONDS = 20.0
#: As long as a job does not listen yet.
FIRST_HINT = 3.0
#: With many tasks the looks are further apart, so that a NameNode hears no more than this a second.
OPERATIONS_A_SECOND = 20.0
MAX_BYTES = 2 << 30
MAX_JOBS = 20
#: Seconds that the first look may take before TensorBoard is shown without all of it.
FIRST_LOOK = 3.0
_NOT_YET = " yet (a program writes them to SUBMARINE_TENSORBOARD_DIR)"


class _ClosedError(Exception):
    """The board is being closed."""


class Board:
    """One TensorBoard.

    Parameters
    ----------
    state_dir
        Its scratch is made below here.
    on_socket
        Listen on a private Unix socket, for a proxy; else on loopback, for a browser.
    port
        On loopback; 0: any that is free.
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
        title = f"{jobs[0].name if len(jobs) == 1 else f'{len(jobs)} jobs'} - TensorBoard"
        private = folder if on_socket else None
        self.process = Process(runs, folder / "tensorboard.log", private, title=title, port=port)
        room = Room(runs, max_bytes)
        self._pairs = [(job, JobFiles(job, runs, room, self._check)) for job in jobs]
        self._trouble: dict[str, str] = {}
        self._closed, self._looked = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for run, name in ((self._fetch, "board-fetch"), (self._ask, "board-ask"))
        ]

    def start(self) -> None:
        """Begin to fetch and start TensorBoard, or start it again where it has died.

        Raises
        ------
        SubmarineError
            If TensorBoard is not installed or does not start.
        """
        with self._lock:
            if self._closed.is_set():
                raise SubmarineError("This TensorBoard has been shut down.", "Open it again.")
            for thread in self._threads:
                if thread.ident is None:
                    thread.start()
            if not self.process.alive:
                self.process.start()
        self._looked.wait(FIRST_LOOK)

    def notices(self) -> list[str]:
        """What whoever looks should know, a sentence each: what is missing, what is behind."""
        empty = [
            f"{job.id} has written no TensorBoard files{'' if files.complete else _NOT_YET}."
            for job, files in self._pairs
            if files.empty and job.id not in self._trouble
        ]
        troubles = [f"{job} is not up to date: {why}." for job, why in self._trouble.items()]
        return troubles + empty

    def close(self) -> None:
        """End it and remove what it has fetched; more than once is no error."""
        self._closed.set()
        with self._lock:
            self.process.remove()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(1.0)  # one that waits for HDFS finds out later
        self._scratch.remove()

    def _check(self) -> None:
        if self._closed.is_set():
            raise _ClosedError

    def _fetch(self) -> None:
        while not self._closed.is_set():
            began, operations = time.monotonic(), 0
            for job, files in self._pairs:
                try:
                    operations += files.bring()
                    self._trouble.pop(job.id, None)
                except _ClosedError:
                    return
                except (StoreError, OSError, NoRoomError, SubmarineError, ValueError) as exc:
                    self._trouble[job.id] = " ".join(str(exc).split())[:300].rstrip(".")
            self._looked.set()
            pause = max(INTERVAL - (time.monotonic() - began), operations / OPERATIONS_A_SECOND)
            self._closed.wait(max(0.2, pause))

    def _ask(self) -> None:
        """Have the agents ship what is new every other second; they forget it after a minute."""
        while not self._closed.is_set():
            waits = [self._told(job) for job, files in self._pairs if not files.complete]
            self._closed.wait(HINT_SECONDS if all(waits) else FIRST_HINT)

    def _told(self, job: Job) -> bool:
        """Whether the job has been told that somebody looks; False before it listens."""
        if self._closed.is_set():
            return True
        try:
            agent = job.agent()
            if agent is not None:
                agent.look()
            return agent is not None
        except (SubmarineError, OSError, ValueError, KeyError, TypeError):
            return True  # out of reach: the files come all the same, some seconds later


def scratch_parent(state_dir: Path) -> Path:
    """Where the scratch of all boards lies."""
    return state_dir / "tensorboard"
